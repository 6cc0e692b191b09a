"""The Nash mixture of games whose solution is known, and of random ones by its exploitability."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_league import SimulatedLeague, three_roles

from league.core.metagame import (
    exploitability,
    league_mixture,
    nash_mixture,
    replicator_mixture,
    snapshot_win_rates,
)


def cyclic(first: float, second: float, third: float) -> np.ndarray:
    """Rock-paper-scissors in which the stakes of the three pairings differ; win rates in [0, 1]."""
    gains = np.array([[0.0, -first, second], [first, 0.0, -third], [-second, third, 0.0]])
    return 0.5 + 0.5 * gains


def test_rock_paper_scissors_is_mixed_evenly() -> None:
    np.testing.assert_allclose(nash_mixture(cyclic(1.0, 1.0, 1.0)), np.full(3, 1 / 3), atol=1e-3)


def test_unequal_stakes_shift_the_mixture() -> None:
    # Each of the three is played in proportion to the stake of the pairing that it is not in.
    np.testing.assert_allclose(nash_mixture(cyclic(0.2, 0.3, 0.5), tolerance=1e-5), [0.5, 0.3, 0.2], atol=2e-3)


def test_a_dominating_policy_is_played_alone() -> None:
    mixture = nash_mixture(np.array([[0.5, 0.9, 0.9], [0.1, 0.5, 0.8], [0.1, 0.2, 0.5]]))
    assert mixture[0] == pytest.approx(1.0, abs=1e-2)


def test_copies_of_a_policy_share_its_weight() -> None:
    base = cyclic(1.0, 1.0, 1.0)
    doubled = base[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]
    mixture = nash_mixture(doubled)
    assert mixture[:2].sum() == pytest.approx(1 / 3, abs=2e-3)
    assert mixture[0] == pytest.approx(mixture[1])


@pytest.mark.parametrize("size", [1, 2, 7, 60, 300])
@pytest.mark.parametrize("kind", ["random", "disc", "skill", "transitive and cyclic"])
def test_no_row_wins_more_than_a_thousandth_against_the_mixture(size: int, kind: str) -> None:
    rng = np.random.default_rng(size)
    skill, disc = rng.normal(size=size), rng.normal(size=(size, 2))
    gains = {
        "random": rng.uniform(-1, 1, (size, size)),
        "disc": 0.2 * np.outer(disc[:, 0], disc[:, 1]),
        "skill": np.tanh(skill[:, None] - skill[None, :]),
        "transitive and cyclic": 0.2 * (skill[:, None] - skill[None, :]) + 0.3 * np.outer(disc[:, 0], disc[:, 1]),
    }[kind]
    win_rates = np.clip(0.5 + 0.25 * (gains - gains.T), 0.0, 1.0)
    mixture = nash_mixture(win_rates)
    assert mixture.sum() == pytest.approx(1.0)
    assert np.all(mixture >= 0.0)
    assert exploitability(win_rates, mixture) < 1e-3


def test_a_table_that_is_not_square_is_refused() -> None:
    for shape in ((0, 0), (2, 3)):
        with pytest.raises(ValueError, match="must be"):
            nash_mixture(np.full(shape, 0.5))


def test_the_mixture_of_a_league_is_over_its_snapshots_and_follows_strength() -> None:
    league = SimulatedLeague(three_roles(rating_share=0.5), strength=lambda policy: float(policy == "main-0-s3") * 3.0)
    assert league_mixture(league.state) == ()
    league.run(300)
    mixture = league_mixture(league.state)
    assert sum(weight for _, weight in mixture) == pytest.approx(1.0)
    assert {policy for policy, _ in mixture} <= set(league.state.snapshots)
    assert mixture[0][0] == "main-0-s3"
    assert mixture[0][1] > 0.8


def test_pairs_that_never_met_are_forecast_by_the_ratings() -> None:
    league = SimulatedLeague(three_roles(rating_share=0.0))
    league.run(100)
    np.testing.assert_allclose(snapshot_win_rates(league.state, list(league.state.snapshots)), 0.5)


def test_a_single_seat_league_exports_its_newest_snapshot() -> None:
    league = SimulatedLeague(three_roles(), teams=(0,))
    league.run(60)
    assert league_mixture(league.state) == ((list(league.state.snapshots)[-1], 1.0),)


def test_replicator_dynamics_find_the_mixture_of_a_cyclic_game_and_the_dominating_policy() -> None:
    np.testing.assert_allclose(replicator_mixture(cyclic(0.2, 0.3, 0.5)), [0.5, 0.3, 0.2], atol=0.02)
    ladder = replicator_mixture(np.array([[0.5, 0.9, 0.9], [0.1, 0.5, 0.8], [0.1, 0.2, 0.5]]))
    assert ladder[0] > 0.95


@pytest.mark.parametrize("size", [2, 20, 100])
def test_replicator_dynamics_leave_little_to_exploit(size: int) -> None:
    rng = np.random.default_rng(size)
    win_rates = rng.uniform(0.0, 1.0, (size, size))
    mixture = replicator_mixture(win_rates)
    assert mixture.sum() == pytest.approx(1.0)
    assert exploitability(win_rates, mixture) < 0.02
