"""Scores and intervals of a match are what their definitions say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtrit

from league.judge.matches.match_result import mean_interval, score_games, student_95, wilson


def paired(results: list[tuple[float, float]]) -> np.ndarray:
    """Returns [2, G, 2] of a two-seat game: home's return in either rotation of each pair."""
    home = np.array(results, np.float64).T
    return np.stack([home, -home], axis=2)


def test_wilson_agrees_with_published_values() -> None:
    """Newcombe 1998, table I: 81 of 263 and 0 of 20."""
    interval = wilson(81 / 263, 263)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2553, 0.3662)
    interval = wilson(0.0, 20)
    assert (interval.low, round(interval.high, 4)) == (0.0, 0.1611)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """2,000 matches of 100 independent games at 0.9: 95 % nominal, at least 93 % by binomial noise and discreteness."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        home = np.where(rng.random((50, 2)) < 0.9, 1.0, -1.0)
        score = score_games(paired([tuple(row) for row in home]), steps=100).score()
        covered += score.low <= 0.9 <= score.high
    assert covered / 2000 > 0.93


def test_pairs_that_agree_widen_the_interval() -> None:
    """When both games of a pair always end alike, 100 games tell as much as 50."""
    alike = score_games(paired([(1.0, 1.0), (-1.0, -1.0)] * 25), steps=1).score()
    apart = score_games(paired([(1.0, -1.0), (-1.0, 1.0)] * 25), steps=1).score()
    fifty, hundred = wilson(0.5, 50), wilson(0.5, 100)
    assert alike.value == apart.value == 0.5
    assert alike.high - alike.low == pytest.approx(fifty.high - fifty.low, rel=0.02)
    assert apart.high - apart.low == pytest.approx(hundred.high - hundred.low)


def test_a_perfect_score_keeps_an_interval() -> None:
    score = score_games(paired([(1.0, 1.0)] * 10), steps=1).score()
    assert score.value == score.high == 1.0
    assert score.low == pytest.approx(wilson(1.0, 20 * 13 / 17).low)
    assert score.low < 0.9


def test_a_draw_is_half_a_win() -> None:
    result = score_games(paired([(0.0, 1.0), (0.0, -1.0)]), steps=8)
    assert result.counts() == (1, 2, 1)
    assert result.score().value == 0.5
    assert result.by_team(0) == (0.5, 0.5)
    assert result.mean_steps == 2.0


def test_scores_of_a_game_of_three_are_means_over_the_opponents() -> None:
    """One group of three games in which contender 0 is first twice and second once."""
    returns = np.array([[[2.0, 1.0, 0.0]], [[2.0, 0.0, 1.0]], [[1.0, 2.0, 0.0]]])
    result = score_games(returns, steps=3)
    assert result.counts(0, 1) == (2, 0, 1)
    assert result.score(0).value == pytest.approx((1.0 + 1.0 + 0.5) / 3)
    assert sum(result.score(contender).value for contender in range(3)) == pytest.approx(1.5)
    assert result.by_team(0) == (1.0, 1.0, 0.5)
    # Contender 1 holds team 1 in rotation 0, team 2 in rotation 1, team 0 in rotation 2.
    assert result.by_team(1) == (1.0, 0.5, 0.0)


def test_a_game_of_one_team_has_returns_and_no_score() -> None:
    result = score_games(np.array([[[10.0], [20.0], [30.0]]]), steps=60)
    interval = result.mean_return()
    assert interval.value == 20.0
    assert interval.high - 20.0 == pytest.approx(4.3027 * 10.0 / np.sqrt(3), rel=1e-3)
    with pytest.raises(ValueError, match="one team"):
        result.score()


@pytest.mark.parametrize("groups", [2, 5, 10])
def test_intervals_of_few_groups_cover_means_as_often_as_they_say(groups: int) -> None:
    rng = np.random.default_rng(groups)
    returns = rng.normal(3.0, 2.0, (4000, groups))
    found = [mean_interval(row) for row in returns]
    assert np.mean([one.low <= 3.0 <= one.high for one in found]) == pytest.approx(0.95, abs=0.012)


def test_one_group_bounds_no_mean() -> None:
    result = score_games(paired([(1.0, -1.0)]), steps=1)
    for found in (result.mean_return(), result.margin([1, 1])):
        assert (found.low, found.high) == (-math.inf, math.inf)


def test_student_s_quantiles_are_scipy_s() -> None:
    for freedom in (*range(1, 40), 100, 10_000):
        assert student_95(freedom) == pytest.approx(stdtrit(freedom, 0.975), abs=2e-4)


@pytest.mark.parametrize("truth", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("groups", [2, 3, 5, 10, 50])
def test_a_score_over_pairs_that_all_agree_covers_the_truth_however_few_they_are(groups: int, truth: float) -> None:
    """At least 0.9, for few coarse outcomes. Without a prior two groups covered 0.54 of the time."""
    rng = np.random.default_rng(groups)
    covered = 0
    for _ in range(600):
        won = np.where(rng.random(groups) < truth, 1.0, -1.0)
        score = score_games(paired([(one, one) for one in won]), steps=1).score()
        covered += score.low <= truth <= score.high
    assert covered / 600 >= 0.9
