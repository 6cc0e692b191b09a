"""A configuration tried in virtual time: the real rules, repeatable, and numbers that add up."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.core.directives import view_of
from league.core.state.built_ins import PRESETS
from league.core.state.records import Hyperparameter
from league.core.state.state import digest
from league.lab.simulation.simulate import MAX_OPPONENTS, Simulation, _with_opponents, simulate
from league.lab.simulation.simulation_report import Pace, SimulationReport
from league.lab.simulation.worlds import WORLDS, drawn_placements

QUICK = "population: {save_steps: 200000}"


def config_of(league: str, *, env: str = "connect_four") -> RunConfig:
    return parse_config(
        f"env: {{id: {env}}}\nnetwork: {{hidden: [8]}}\nactors: {{num_envs: 64}}\nleague: {{{league}}}\n"
        "runtime: {kind: inprocess}\n",
        source="test",
    )


def simulated(league: str, *, hours: float = 0.25, world: str = "disc") -> SimulationReport:
    ticks = itertools.count()
    return simulate(config_of(league), 3_600.0 * hours, world=world, clock=lambda: float(next(ticks)))


def test_the_disk_use_that_is_reported_stays_within_the_limits_of_retention() -> None:
    config = config_of(f"preset: self_play, {QUICK}")
    free = simulate(config, 1_800.0, clock=itertools.count().__next__)
    limited = simulate(
        replace(config, retention=replace(config.retention, snapshots=40)), 1_800.0, clock=itertools.count().__next__
    )
    assert free.snapshots_kept == free.snapshots == limited.snapshots > 80
    assert limited.snapshots_kept <= 40
    assert limited.snapshot_bytes == limited.snapshots_kept * free.snapshot_bytes // free.snapshots
    assert f"of {limited.snapshots_kept:,} snapshots that are kept" in limited.text()
    assert limited.metrics_bytes == 128 << 20


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_can_be_tried_and_its_numbers_add_up(preset: str) -> None:
    fixed_opponents = (
        "fixed_opponents: [{policy: 'bot:random', probability: 1.0}]" if preset == "exploit" else "fixed_opponents: []"
    )
    report = simulated(f"preset: {preset}, {QUICK}, {fixed_opponents}", hours=0.1)
    assert report.done_s == pytest.approx(360.0, rel=0.05)
    assert report.env_steps == pytest.approx(360 * 10_000, rel=0.05)
    assert sum(row.snapshots for row in report.players) == report.snapshots > len(report.players)
    assert sum(row.games for row in report.players) + report.rating_games == report.games
    # the first one is of no gate, and so is the last one of a player that a remedy retired
    assert all(0 <= row.snapshots - row.gate - row.timeout - 1 <= 1 for row in report.players)
    assert report.snapshot_bytes > 0
    assert report.journal_bytes > 0
    assert (report.mixtures > 0) == (preset == "psro")
    assert (sum(row.transplants for row in report.players) > 0) == (preset == "pbt")


def test_an_imported_policy_has_a_fixed_skill() -> None:
    settings = config_of(
        f"preset: exploit, {QUICK}, fixed_opponents: [{{policy: 'imported:prey', source: a, probability: 1.0}}]"
    ).league
    pace = Pace(steps_per_s=10_000.0, decisions_per_game=20, hosts=1, lease_steps=20_000, snapshot_bytes=1)
    simulation = Simulation(settings, (0, 1), world=WORLDS["skill"], pace=pace, seed=0)
    win_rates = []
    for until in (10.0, 3_600.0):
        simulation.run(until)
        prey = simulation.state.population.index["imported:prey"]
        win_rates.append(view_of(simulation.state, "main-exploiter-0").posterior.mean[prey])
    assert win_rates[1] > win_rates[0] + 0.2, "its exploiter gains on it"


def test_the_same_seed_gives_the_same_league() -> None:
    assert simulated(f"preset: alphastar, {QUICK}", hours=0.1) == simulated(f"preset: alphastar, {QUICK}", hours=0.1)


@pytest.mark.parametrize("teams", [(0,), (0, 1), (0, 1, 2), (0, 0, 1, 1)], ids=str)
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_every_world_plays_every_shape_of_game(world: str, teams: tuple[int, ...]) -> None:
    settings = config_of(
        f"preset: alphastar, {QUICK}, fixed_opponents: [{{policy: 'bot:random', probability: 0.1}}]"
    ).league
    pace = Pace(steps_per_s=10_000.0, decisions_per_game=20, hosts=2, lease_steps=20_000, snapshot_bytes=1)
    first, again = (Simulation(settings, teams, world=WORLDS[world], pace=pace, seed=3) for _ in range(2))
    for simulation in (first, again):
        simulation.run(100.0)
    assert digest(first.state) == digest(again.state)
    first.run(200.0)
    assert first.state.totals.leases_finished >= 190


@pytest.mark.parametrize("chances", [(0.7,), (0.2, 0.6), (0.5, 0.9, 0.5), (1.0, 0.0)], ids=str)
def test_drawn_orders_meet_the_win_rates_of_the_first_side(chances: tuple[float, ...]) -> None:
    placements = drawn_placements(chances, 40_000, np.random.default_rng(0))
    assert sum(placements.values()) == 40_000
    assert all(sorted(ranks) == list(range(len(chances) + 1)) for ranks in placements)
    for side, chance in enumerate(chances, 1):
        won = sum(games for ranks, games in placements.items() if ranks[0] < ranks[side])
        assert won / 40_000 == pytest.approx(chance, abs=0.01)


def test_progress_goes_up_to_all_of_it() -> None:
    told: list[tuple[float, float]] = []
    config = config_of(f"preset: self_play, {QUICK}")
    simulate(config, 7_200.0, clock=itertools.count().__next__, progress=lambda *row: told.append(row))
    assert len(told) > 2
    assert [total for _, total in told] == [7_200.0] * len(told)
    assert told == sorted(told)
    assert told[-1][0] == 7_200.0


def test_a_game_of_one_team_is_simulated_for_the_time_that_was_asked_for() -> None:
    config = config_of(f"preset: self_play, {QUICK}", env="gymnasium:CartPole-v1")
    report = simulate(config, 10.0, clock=itertools.count().__next__)
    assert report.done_s == report.asked_s == 10.0


def test_a_run_with_too_many_snapshots_ends_early_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.lab.simulation.simulate.MAX_SNAPSHOTS", 20)
    report = simulated(f"preset: self_play, {QUICK}", hours=24.0)
    assert report.snapshots == 20
    assert report.done_s < report.asked_s
    assert "raise min_steps" in report.text()


@pytest.mark.parametrize(("env", "told"), [("leduc_poker", True), ("connect_four", False)])
def test_a_run_that_would_count_returns_is_said_to(env: str, told: bool) -> None:
    report = simulate(config_of(f"preset: self_play, {QUICK}", env=env), 600.0, clock=itertools.count().__next__)
    assert ("the real run counts returns, a margin of 26 counts as a certain win" in report.text()) is told
    assert json.loads(report.to_json())["counts"]["score"] == ("returns" if told else "wins")


def test_a_lease_that_stands_for_many_meets_the_opponents_of_them_all() -> None:
    """Else a month in few long leases would seem to starve pairs that the real run has long met."""
    (few, many) = (
        simulated(f"preset: fictitious, lease_steps: {turns}, population: {{save_steps: 60000}}", hours=0.1)
        for turns in (100_000, 16)
    )
    assert many.lease_steps < few.lease_steps
    settings = config_of("preset: fictitious, lease_steps: 16").league
    assert [_with_opponents(settings, times).players[0].opponents_per_lease for times in (1, 2.4, 99)] == [
        4,
        10,
        MAX_OPPONENTS,
    ]
    assert few.pairs < many.pairs


def test_starved_opponents_are_named() -> None:
    starving = simulated(f"preset: alphastar, {QUICK}, payoff: {{half_life_steps: 10000}}", hours=0.25)
    fed = simulated(f"preset: alphastar, {QUICK}, payoff: {{half_life_steps: 1000000000}}", hours=0.25)
    assert sum(row.starved for row in starving.players) > sum(row.starved for row in fed.players)
    assert starving.starved
    assert "starved: " in starving.text()


def test_the_report_is_text_and_json() -> None:
    report = simulated(f"preset: self_play, {QUICK}")
    assert json.loads(report.to_json())["snapshots"] == report.snapshots
    assert "main-0" in report.text()
    assert report.text().startswith("15.0 minutes of league time")


@pytest.mark.parametrize("world", sorted(WORLDS))
def test_win_rates_of_two_policies_sum_to_one_and_learning_helps_against_whom_is_met(world: str) -> None:
    rng = np.random.default_rng(0)
    game = WORLDS[world]
    gains = []
    for _ in range(30):
        first, second = game.first(rng), game.first(rng)
        assert game.win_rate(first, second) + game.win_rate(second, first) == pytest.approx(1.0)
        learnt = game.learn(first, [(second, 1.0)], 3_000_000, 1.0)
        gains.append(game.win_rate(learnt, second) - game.win_rate(first, second))
        assert np.all(np.isfinite(learnt))
    assert np.mean(gains) > 0.05


def test_games_against_beaten_opponents_teach_less() -> None:
    game = WORLDS["skill"]
    strong, equal, weak = np.array([3.0]), np.array([3.0]), np.array([-3.0])
    assert game.learn(strong, [(equal, 1.0)], 10**6, 1.0) > game.learn(strong, [(weak, 1.0)], 10**6, 1.0)


def test_tuning_finds_values_with_which_learners_learn_faster() -> None:
    tuned = "hyperparameters: [{name: learning_rate, low: 0.1, high: 10.0}]"
    pbt = f"pbt: {{selection: tournament, period_steps: 50000, burn_in_steps: 100000, {tuned}}}"
    settings = config_of(f"preset: pbt, population: {{save_steps: 200000, main_agents: 6}}, {pbt}").league
    pace = Pace(steps_per_s=10_000.0, decisions_per_game=20, hosts=1, lease_steps=50_000, snapshot_bytes=1)
    rates: list[float] = []
    for seed in range(3):
        simulation = Simulation(settings, (0, 1), world=WORLDS["skill"], pace=pace, seed=seed)
        simulation.run(3_600.0)
        rates += [_learning_rate(player.hyperparameters) for player in simulation.state.players.values()]
        assert sum(simulation.totals.transplants.values()) > 5
    assert 1.2 < float(np.exp(np.mean(np.log(rates)))) < 4.0, "the simulated learners learn fastest at 2"


def _learning_rate(values: tuple[Hyperparameter, ...]) -> float:
    return next(item.value for item in values if item.name == "learning_rate")
