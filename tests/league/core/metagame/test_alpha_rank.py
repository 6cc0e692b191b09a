"""Alpha-rank and Nash averaging on games whose ranking is known, and against a plain solution of the chain."""

from __future__ import annotations

import numpy as np
import pytest

from league.core.metagame.alpha_rank import alpha_rank, fixation, nash_average, stationary
from league.policies.nash_lp import nash

RPS = np.array([[0.5, 0.0, 1.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.5]])


def test_a_cycle_is_ranked_evenly_and_a_dominating_policy_alone() -> None:
    np.testing.assert_allclose(alpha_rank(RPS), np.full(3, 1 / 3), atol=1e-9)
    ladder = np.array([[0.5, 0.2, 0.1], [0.8, 0.5, 0.3], [0.9, 0.7, 0.5]])
    np.testing.assert_allclose(alpha_rank(ladder), [0.0, 0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(alpha_rank(np.full((4, 4), 0.5)), np.full(4, 0.25))
    assert alpha_rank(np.array([[0.5]])) == [1.0]


def test_a_policy_that_loses_to_every_member_of_a_cycle_has_no_weight() -> None:
    table = np.full((4, 4), 0.5)
    table[:3, :3] = RPS
    table[:3, 3], table[3, :3] = 0.9, 0.1
    np.testing.assert_allclose(alpha_rank(table), [1 / 3, 1 / 3, 1 / 3, 0.0], atol=1e-6)


@pytest.mark.parametrize("size", [2, 3, 8, 40])
def test_the_stationary_distribution_solves_the_chain(size: int) -> None:
    rng = np.random.default_rng(size)
    rates = rng.random((size, size)) * 10.0 ** rng.uniform(-4, 0, (size, size))
    probabilities = stationary(rates)
    np.fill_diagonal(rates, 0.0)
    np.testing.assert_allclose(probabilities @ rates, probabilities * rates.sum(axis=1), rtol=1e-9)
    assert probabilities.sum() == pytest.approx(1.0)


def test_a_take_over_has_the_published_chance() -> None:
    for advantage in (-0.7, -1e-3, 1e-3, 0.4, 3.0):
        expected = (1 - np.exp(-advantage)) / (1 - np.exp(-50 * advantage))
        assert fixation(np.array(advantage), 50) == pytest.approx(expected, rel=1e-9)
    assert fixation(np.array(0.0), 50) == pytest.approx(1 / 50)
    assert np.all(np.isfinite(fixation(np.array([-1e4, 1e4]), 50)))


def test_copies_of_a_policy_do_not_change_a_nash_average() -> None:
    ladder = np.array([[0.5, 0.3, 0.6], [0.7, 0.5, 0.9], [0.4, 0.1, 0.5]])
    np.testing.assert_allclose(nash_average(ladder, nash(ladder)), [-0.2, 0.0, -0.4], atol=2e-3)
    copies = ladder[np.ix_([0, 1, 2, 2, 2], [0, 1, 2, 2, 2])]
    np.testing.assert_allclose(nash_average(copies, nash(copies))[:3], nash_average(ladder, nash(ladder)), atol=2e-3)
    np.testing.assert_allclose(nash_average(RPS, nash(RPS)), np.zeros(3), atol=2e-3)


@pytest.mark.parametrize("shape", [(0, 0), (2, 3)])
def test_a_table_that_is_not_square_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        alpha_rank(np.full(shape, 0.5))
