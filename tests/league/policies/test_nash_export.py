"""The exported mixture: what no snapshot surely beats; exact where games are many, even where they are few."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import league.policies.nash_export
from league.core.metagame.solvers import exploitability
from league.core.state.commands import FinishLease
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig
from league.policies.nash_export import league_mixture
from league.policies.select import choose
from tests.league.core.simulated_league import SimulatedLeague, outcome_of, three_roles


def league_of(win_rates: np.ndarray, *, games: int, rng: np.random.Generator | None = None) -> SimulatedLeague:
    """A league of one snapshot a row, every pair played: to the letter, or as chance has it."""
    never = GateConfig(min_steps=10**9, timeout_steps=10**9)
    made = SimulatedLeague(LeagueConfig(players=(PlayerConfig(count=len(win_rates), gate=never),)))
    made.confirm_directives()
    return played(made, win_rates, games=games, rng=rng)


def played(
    made: SimulatedLeague, win_rates: np.ndarray, *, games: int, rng: np.random.Generator | None
) -> SimulatedLeague:
    names = list(made.state.snapshots)
    for i, j in itertools.combinations(range(len(names)), 2):
        lease = made.grant("rate")
        won = round(games * win_rates[i, j]) if rng is None else int(rng.binomial(games, win_rates[i, j]))
        played = outcome_of((names[i], names[j]), (0, 1), games=games, winners=[0] * won + [1] * (games - won))
        made.ask(FinishLease(lease.lease_id, lease.token, games, (played,)))
    return made


def league_of_roles(roles: list[str], win_rates: np.ndarray, *, games: int = 2_000) -> SimulatedLeague:
    """As `league_of`, each snapshot of a player of that role."""
    never = GateConfig(min_steps=10**9, timeout_steps=10**9)
    groups = tuple(PlayerConfig(role=role, count=count, gate=never) for role, count in Counter(roles).items())
    made = SimulatedLeague(LeagueConfig(players=groups))
    made.confirm_directives()
    return played(made, win_rates, games=games, rng=None)


def weights_of(made: SimulatedLeague) -> np.ndarray:
    weights = dict(league_mixture(made.state))
    return np.array([weights.get(name, 0.0) for name in made.state.snapshots])


def test_a_league_without_snapshots_has_none_and_with_one_seat_the_newest() -> None:
    made = SimulatedLeague(three_roles())
    assert league_mixture(made.state) == ()
    alone = SimulatedLeague(three_roles(), teams=(0,))
    alone.run(60)
    assert league_mixture(alone.state) == ((list(alone.state.snapshots)[-1], 1.0),)


def test_the_mixture_is_over_snapshots_and_follows_strength() -> None:
    made = SimulatedLeague(three_roles(rating_fraction=0.5), strength=lambda policy: float(policy == "main-0-s3") * 3.0)
    made.run(300)
    mixture = league_mixture(made.state)
    assert sum(weight for _, weight in mixture) == pytest.approx(1.0)
    assert {policy for policy, _ in mixture} <= set(made.state.snapshots)
    assert mixture[0][0] == "main-0-s3"
    assert mixture[0][1] > 0.8


def test_with_many_games_it_is_the_nash_mixture() -> None:
    win_rates = np.array([[0.5, 0.3, 0.9], [0.7, 0.5, 0.0], [0.1, 1.0, 0.5]])
    weights = weights_of(league_of(win_rates, games=20_000))
    assert exploitability(win_rates, weights) < 0.01
    np.testing.assert_allclose(weights, [5 / 11, 4 / 11, 2 / 11], atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_of_equals_it_is_no_single_lucky_one(seed: int) -> None:
    made = league_of(np.full((12, 12), 0.5), games=30, rng=np.random.default_rng(seed))
    weights = weights_of(made)
    assert np.count_nonzero(weights > 0.01) >= 6
    assert weights.max() < 0.35


def test_of_equals_newer_ones_weigh_more() -> None:
    np.testing.assert_allclose(weights_of(league_of(np.full((4, 4), 0.5), games=30)), [0.1, 0.2, 0.3, 0.4], atol=1e-6)


def test_policies_that_are_certainly_weaker_stay_out() -> None:
    win_rates = np.full((6, 6), 0.5)
    win_rates[:3, 3:], win_rates[3:, :3] = 0.2, 0.8
    weights = weights_of(league_of(win_rates, games=400))
    assert weights[:3].sum() < 0.05
    np.testing.assert_allclose(weights[3:], [4 / 15, 5 / 15, 6 / 15], atol=0.03)


def test_of_more_snapshots_than_the_program_takes_the_highest_rated_count(monkeypatch: pytest.MonkeyPatch) -> None:
    win_rates = np.full((6, 6), 0.5)
    win_rates[:3, 3:], win_rates[3:, :3] = 0.8, 0.2
    made = league_of(win_rates, games=400)
    monkeypatch.setattr(league.policies.nash_export, "MAX_POLICIES", 3)
    assert np.flatnonzero(weights_of(made)).tolist() == [0, 1, 2]


def test_an_exploiters_snapshot_that_nobody_beats_is_no_export_while_main_agents_have_any() -> None:
    # Two snapshots of main agents, and an exploiter that was trained against both.
    win_rates = np.array([[0.5, 0.5, 0.2], [0.5, 0.5, 0.3], [0.8, 0.7, 0.5]])
    made = league_of_roles(["main_agent", "main_agent", "main_exploiter"], win_rates)
    names = list(made.state.snapshots)
    assert dict(league_mixture(made.state)) == {names[1]: pytest.approx(1.0)}
    alone = league_of_roles(["main_exploiter", "league_exploiter"], win_rates[1:, 1:])
    assert league_mixture(alone.state) == ((list(alone.state.snapshots)[1], 1.0),)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_opponent_wins_no_more_against_the_mixture_than_against_the_average(seed: int) -> None:
    rng = np.random.default_rng(seed)
    roles = ["main_agent"] * int(rng.integers(1, 6)) + ["main_exploiter", "league_exploiter"]
    size = len(roles)
    gains = rng.uniform(-0.4, 0.4, (size, size))
    win_rates = 0.5 + 0.5 * (gains - gains.T)
    made = league_of_roles(roles, win_rates)
    average = np.zeros(size)
    for weight, snapshot in choose(made.state, "average").members:
        average[list(made.state.snapshots).index(snapshot.snapshot_id)] = weight
    # What is not sure at 2,000 games a pair is at most 0.25 standard deviations, of 0.011 each.
    assert exploitability(win_rates, weights_of(made)) <= max(exploitability(win_rates, average), 0.0) + 0.004
