"""PFSP against its published formulas, at its edges, and the drawing of a lease's few opponents from many."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.core.matchmaking.pfsp import Weighting, pfsp, sparse_probabilities

EVERY_WEIGHTING = sorted(get_args(Weighting))

rates = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).map(np.array)


@pytest.mark.parametrize(
    ("weighting", "weights"),
    [
        ("squared", [1.0, 0.64, 0.25, 0.01]),
        ("variance", [0.0, 0.16, 0.25, 0.09]),
        ("variance_rectified", [0.09, 0.16, 0.25, 0.09]),
        ("linear", [1.0, 0.8, 0.5, 0.1]),
        ("linear_capped", [0.5, 0.5, 0.5, 0.1]),
        ("uniform", [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_weightings_are_the_published_ones(weighting: str, weights: list[float]) -> None:
    expected = np.array(weights) / sum(weights)
    np.testing.assert_allclose(pfsp(np.array([0.0, 0.2, 0.5, 0.9]), weighting), expected)  # type: ignore[arg-type]


def test_the_numbers_of_a_weighting_count() -> None:
    win_rates = np.array([0.0, 0.2, 0.9])
    np.testing.assert_allclose(pfsp(win_rates, "hard", exponent=1.0), pfsp(win_rates, "linear"))
    rectified = np.array([0.21, 0.21, 0.09])
    np.testing.assert_allclose(pfsp(win_rates, "variance_rectified", rectified_below=0.3), rectified / rectified.sum())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(rates, st.sampled_from(EVERY_WEIGHTING))
def test_probabilities_are_finite_and_sum_to_one(win_rates: np.ndarray, weighting: str) -> None:
    probabilities = pfsp(win_rates, weighting)  # type: ignore[arg-type]
    assert np.all(probabilities >= 0.0)
    assert probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("weighting", EVERY_WEIGHTING)
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_equal_certainties_are_met_evenly_and_divide_nothing_by_zero(weighting: str, rate: float) -> None:
    np.testing.assert_allclose(pfsp(np.full(5, rate), weighting), np.full(5, 0.2))  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [[], [0.5, float("nan")], [1.5], [-0.1]])
def test_no_candidate_and_impossible_win_rates_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"candidate|win rates"):
        pfsp(np.array(bad), "squared")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rates, st.integers(1, 8), st.integers(0, 1_000))
def test_a_lease_holds_few_distinct_opponents_whose_shares_sum_to_one(
    weights: np.ndarray, limit: int, seed: int
) -> None:
    weights = weights + 1e-6
    probabilities = weights / weights.sum()
    chosen, kept = sparse_probabilities(probabilities, limit=limit, rng=np.random.default_rng(seed))
    assert 1 <= len(chosen) <= limit
    assert len(set(chosen.tolist())) == len(chosen)
    assert kept.sum() == pytest.approx(1.0)
    assert np.all(kept > 0.0)


@pytest.mark.parametrize("limit", [1, 2, 4, 7])
def test_over_many_leases_every_opponent_gets_its_probability(limit: int) -> None:
    probabilities = np.array([0.35, 0.0, 0.2, 0.15, 0.1, 0.08, 0.06, 0.04, 0.02])
    total, rng = np.zeros(len(probabilities)), np.random.default_rng(0)
    for _ in range(6_000):
        chosen, kept = sparse_probabilities(probabilities, limit=limit, rng=rng)
        total[chosen] += kept
    np.testing.assert_allclose(total / 6_000, probabilities, atol=0.02)


def test_a_large_share_is_exact_in_every_lease() -> None:
    probabilities = np.concatenate([[0.35], np.full(1_000, 0.00065)])
    for seed in range(20):
        chosen, kept = sparse_probabilities(probabilities, limit=4, rng=np.random.default_rng(seed))
        assert len(chosen) == 4
        assert kept[chosen == 0] == pytest.approx(0.35)


@pytest.mark.filterwarnings("error")
def test_what_weighs_less_than_rounding_is_left_out() -> None:
    """As a quality that has fallen for long: the few that are kept take all, and nothing is divided by zero."""
    probabilities = np.array([0.8, 0.1, 0.1, 1e-18, 1e-19])
    chosen, kept = sparse_probabilities(probabilities, limit=3, rng=np.random.default_rng(0))
    assert chosen.tolist() == [0, 1, 2]
    assert kept == pytest.approx([0.8, 0.1, 0.1])
