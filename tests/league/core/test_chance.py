"""Chance: each draw has a seed of its own, and a real run and a simulated one follow the same rule."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from league.core.chance import seed_of
from league.core.league import apply, decide
from league.core.state.commands import (
    Command,
    ConfirmSnapshot,
    CreateLeague,
    FinishLease,
    ReportProgress,
    RequestLease,
    SaveCheckpoint,
    StartRun,
)
from league.core.state.events import DirectiveIssued, Event, LeaseGranted
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.population_config import HyperparameterConfig, PbtConfig
from league.core.state.records import Progress
from league.core.state.state import LeagueState
from league.lab.simulation.simulate import Simulation
from league.lab.simulation.simulation_report import Pace
from league.lab.simulation.worlds import WORLDS
from league.store.journaled_league import JournaledLeague

DIGEST = "0" * 64
SEEDS = 2_000
EXPLOITERS = LeagueConfig(
    players=(
        PlayerConfig(role="main_agent"),
        PlayerConfig(role="league_exploiter", count=3, gate=GateConfig(min_steps=10, timeout_steps=10)),
    )
)
TUNED = LeagueConfig(
    players=(PlayerConfig(count=8, matchmaker="self_play", gate=GateConfig(timeout_steps=10**9)),),
    pbt=PbtConfig(
        selection="elo_gap",
        hyperparameters=(HyperparameterConfig("learning_rate"),),
        period_steps=100,
        burn_in_steps=0,
        min_games=0.0,
    ),
    ratings=RatingConfig(step_fraction=0.0),
)


class League:
    """A league whose chance follows the rule of a real run."""

    def __init__(self, settings: LeagueConfig, *, seed: int, teams: tuple[int, ...] = (0, 1)) -> None:
        self.state = LeagueState()
        self.ask(CreateLeague(seed, len(teams), teams, settings))
        self.ask(StartRun())
        for order in list(self.state.directives.values()):
            self.ask(ConfirmSnapshot(order.directive_id, DIGEST, 0, 0))

    def ask(self, command: Command) -> list[Event]:
        events = decide(self.state, command, np.random.default_rng(seed_of(self.state, command)))
        for event in events:
            apply(self.state, event)
        return events


def resets(seed: int) -> list[bool]:
    """Whether each of three league exploiters starts again, whose snapshots are confirmed between two leases."""
    league = League(EXPLOITERS, seed=seed)
    for number in range(3):
        league.ask(ReportProgress(Progress(f"league-exploiter-{number}", 1, 10)))
    found = []
    for order in list(league.state.directives.values()):
        events = league.ask(ConfirmSnapshot(order.directive_id, DIGEST, 1, 10))
        found.append(any(isinstance(event, DirectiveIssued) for event in events))
    return found


def test_exploiters_that_are_confirmed_between_two_leases_start_again_each_by_its_own_coin() -> None:
    """Null: three independent coins of 0.25. Bound: 4 standard errors of a rate, of an agreement, of all three."""
    drawn = np.array([resets(seed) for seed in range(SEEDS)])
    assert drawn.shape == (SEEDS, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.25, atol=4 * np.sqrt(0.25 * 0.75 / SEEDS))
    for i, j in itertools.combinations(range(3), 2):
        agree = 0.25**2 + 0.75**2
        assert (drawn[:, i] == drawn[:, j]).mean() == pytest.approx(agree, abs=4 * np.sqrt(agree * (1 - agree) / SEEDS))
    assert drawn.all(axis=1).mean() == pytest.approx(0.25**3, abs=4 * np.sqrt(0.25**3 / SEEDS))


def transplants(seed: int) -> list[bool]:
    """Whether each of seven equal players, whose reports come between two leases, copies the one that is better."""
    league = League(TUNED, seed=seed, teams=(0,))
    names = list(league.state.players)
    for name in names:
        player = league.state.players[name]
        player.return_games, player.mean_return = 100.0, float(name == names[-1])
        league.ask(SaveCheckpoint(name, DIGEST, 0, 0))
    reports = [league.ask(ReportProgress(Progress(name, 1, 100))) for name in names[:-1]]
    return [any(isinstance(event, DirectiveIssued) for event in events) for events in reports]


def test_players_that_report_between_two_leases_choose_their_donors_independently() -> None:
    """Null: each draws one of seven others, and copies it where it is the better one. Bound: 4 standard errors."""
    drawn = np.array([transplants(seed) for seed in range(300)])
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / 7, atol=4 * np.sqrt(1 / 7 * 6 / 7 / 300))
    agree = (1 / 7) ** 2 + (6 / 7) ** 2
    for i, j in itertools.combinations(range(7), 2):
        assert (drawn[:, i] == drawn[:, j]).mean() < agree + 4 * np.sqrt(agree * (1 - agree) / 300)


def league_of(path: Path, *, seed: int, config: LeagueConfig = EXPLOITERS) -> JournaledLeague:
    league = JournaledLeague.create(path, wall_time=lambda: 0.0)
    league.execute(CreateLeague(seed, 2, (0, 1), config))
    league.execute(StartRun())
    return league


def test_every_command_of_a_run_that_draws_has_a_generator_of_its_own(tmp_path: Path) -> None:
    """First snapshots of all players, then the progress of all, each between two leases; then leases."""
    league, drawn = league_of(tmp_path / "journal.db", seed=1), []

    def execute(command: Command) -> list[Event]:
        drawn.append(league._rng(command).random())
        return league.execute(command)

    for order in list(league.state.directives.values()):
        execute(ConfirmSnapshot(order.directive_id, DIGEST, 0, 0))
    for steps in (10, 5, 10):  # on, back to a checkpoint, and on again
        for name in league.state.players:
            execute(ReportProgress(Progress(name, 1, steps)))
    for _ in range(3):
        granted, *_ = execute(RequestLease("actor-0"))
        assert isinstance(granted, LeaseGranted)
        league.execute(FinishLease(granted.lease.lease_id, granted.lease.token, 10, ()))
    assert len(drawn) == 4 + 12 + 3
    assert len(set(drawn)) == len(drawn)
    league.close()


def test_first_hyperparameters_follow_the_seed_and_a_simulation_draws_the_same(tmp_path: Path) -> None:
    values = []
    for seed in (1, 2):
        league = league_of(tmp_path / f"{seed}.db", seed=seed, config=TUNED)
        pace = Pace(1_000.0, 10, 1, lease_steps=100, snapshot_bytes=1)
        simulation = Simulation(TUNED, (0, 1), world=WORLDS["skill"], pace=pace, seed=seed)
        simulation.run(0.0)
        values.append([player.hyperparameters for player in league.state.players.values()])
        assert [player.hyperparameters for player in simulation.state.players.values()] == values[-1]
        league.close()
    assert values[0] != values[1]
