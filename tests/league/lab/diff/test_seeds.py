"""Intervals over runs and the permutation test, against scipy and against every split counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import stdtrit

from league.lab.diff.seeds import POWER, difference, paired_difference, permutation_test, seeds_needed
from tests.oracles.seeds_needed import fewest_seeds

LEFT, RIGHT = (10.0, 14.0, 9.0, 12.5), (20.0, 17.0, 26.0)


def test_two_groups_have_welchs_interval() -> None:
    from scipy import stats  # seconds, which each process that only collects this file would pay

    found, known = difference(LEFT, RIGHT), stats.ttest_ind(RIGHT, LEFT, equal_var=False).confidence_interval(0.95)
    assert (found.method, found.is_more_than_seeds) == ("welch", known.low > 0.0)
    assert found.value == pytest.approx(np.mean(RIGHT) - np.mean(LEFT))
    assert (found.low, found.high) == (pytest.approx(known.low), pytest.approx(known.high))


def test_a_single_run_takes_the_spread_of_the_other_side() -> None:
    found = difference((11.0,), RIGHT)
    half = float(stdtrit(2, 0.975)) * np.std(RIGHT, ddof=1) * np.sqrt(1.0 + 1.0 / 3.0)
    assert found.method == "pooled" and found.low == pytest.approx(found.value - half)
    swapped = difference(RIGHT, (11.0,))
    assert swapped.value == -found.value and swapped.high == pytest.approx(-(found.low or 0.0))


def test_one_run_each_says_nothing_about_seeds_unless_their_spread_is_given() -> None:
    found = difference((0.0,), (400.0,))
    assert (found.low, found.p_value, found.is_more_than_seeds, found.method) == (None, None, None, "none")
    given = difference((0.0,), (400.0,), seed_spread=100.0)
    assert given.low == pytest.approx(400.0 - 1.96 * 100.0 * 2**0.5, abs=0.1) and given.is_more_than_seeds
    assert difference((0.0,), (400.0,), seed_spread=200.0).is_more_than_seeds is False


def test_the_permutation_test_counts_every_split() -> None:
    values = (*LEFT, *RIGHT)
    seen = abs(np.mean(RIGHT) - np.mean(LEFT))
    splits = list(itertools.combinations(range(7), 4))
    as_far = 0
    for left in splits:
        right = [place for place in range(7) if place not in left]
        means = np.mean([values[place] for place in right]) - np.mean([values[place] for place in left])
        as_far += abs(means) >= seen - 1e-12
    assert permutation_test(LEFT, RIGHT) == (pytest.approx(as_far / 35), pytest.approx(1 / 35))
    assert permutation_test((1.0, 2.0, 3.0), (7.0, 8.0, 9.0)) == (pytest.approx(0.1), pytest.approx(0.1))


def test_equal_sides_differ_by_nothing_and_runs_without_spread_have_no_width() -> None:
    same = difference((5.0, 5.0), (5.0, 5.0))
    assert (same.value, same.low, same.high, same.is_more_than_seeds) == (0.0, 0.0, 0.0, False)
    assert difference((5.0, 5.0), (6.0, 6.0)).is_more_than_seeds is True


def test_of_sides_that_differ_by_seeds_alone_one_in_twenty_is_taken_for_more() -> None:
    """Null: both sides of four runs from one normal distribution; 2,000 pairs, so that 5 % is known to 1 %."""
    rng = np.random.default_rng(3)
    draws = rng.normal(0.0, 50.0, (2_000, 8))
    wrong = sum(bool(difference(row[:4].tolist(), row[4:].tolist()).is_more_than_seeds) for row in draws)
    assert 0.03 <= wrong / 2_000 <= 0.065


def test_pairs_of_equal_seeds_have_students_interval() -> None:
    from scipy import stats

    values = (0.1, 0.25, -0.05, 0.2)
    found, known = paired_difference(values), stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(values), known.low, known.high))
    wider = stats.ttest_1samp(values, 0.0).confidence_interval(1.0 - 0.05 / 3)
    assert paired_difference(values, looks=3).low == pytest.approx(wider.low)
    assert paired_difference((0.4,)).is_more_than_seeds is None


@pytest.mark.parametrize(("effect", "spread"), [(1.0, 1.0), (0.05, 0.08), (-0.3, 0.1)])
def test_the_seeds_needed_are_those_of_the_power_integral(effect: float, spread: float) -> None:
    assert seeds_needed(effect, spread) == fewest_seeds(abs(effect), spread, POWER)


def test_without_spread_two_seeds_do_and_without_effect_none() -> None:
    assert (seeds_needed(0.1, 0.0), seeds_needed(0.0, 0.0), seeds_needed(0.001, 1.0)) == (2, None, None)
