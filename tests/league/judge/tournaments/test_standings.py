"""Standings: known strengths come back, whichever way round a pairing was written."""

from __future__ import annotations

import numpy as np
import pytest

from league.judge.matches.match_result import MatchResult, score_games
from league.judge.matches.sprt import expected_score
from league.judge.tournaments.records import BatchKey, Lineup, played_batch, result_of
from league.judge.tournaments.standings import Anchor, scores_between, standings

STRENGTHS = (0.0, 150.0, -100.0, 60.0)


def games_between(first: float, second: float, *, groups: int, rng: np.random.Generator) -> MatchResult:
    """Independent games of two teams, won by the logistic curve."""
    won = rng.random((2, groups)) < expected_score(first - second)
    returns = np.where(won[:, :, None], [1.0, -1.0], [-1.0, 1.0])
    return score_games(returns, steps=20 * groups)


def all_play(*, groups: int, turned: bool, seed: int = 0) -> dict[Lineup, MatchResult]:
    rng = np.random.default_rng(seed)
    results = {}
    for i in range(4):
        for j in range(i):
            lineup = (j, i) if turned else (i, j)
            results[lineup] = games_between(STRENGTHS[lineup[0]], STRENGTHS[lineup[1]], groups=groups, rng=rng)
    return results


@pytest.mark.parametrize("turned", [False, True])
def test_known_strengths_come_back_from_many_games(turned: bool) -> None:
    results = all_play(groups=4000, turned=turned)
    rows = standings(results, contenders=4, teams=2, anchor=Anchor(0, 0.0), aborted=[0] * 4, most=3)
    assert [row.place for row in rows] == [1, 3, 0, 2]
    for row in rows:
        assert row.rating is not None and row.rating.value == pytest.approx(STRENGTHS[row.place], abs=15.0)
        assert row.rating.low - 3 <= STRENGTHS[row.place] <= row.rating.high + 3


def test_the_anchor_moves_the_scale_and_a_pairing_written_both_ways_counts_as_one() -> None:
    one_way = all_play(groups=50, turned=False)
    both = {**one_way, (0, 1): games_between(0.0, 150.0, groups=50, rng=np.random.default_rng(9))}
    at_zero, at_500 = (
        {row.place: row for row in standings(both, contenders=4, teams=2, anchor=anchor, aborted=[0] * 4, most=3)}
        for anchor in (Anchor(0, 0.0), Anchor(0, 500.0))
    )
    for place in range(4):
        low, high = at_zero[place].rating, at_500[place].rating
        assert low is not None and high is not None and high.value - low.value == pytest.approx(500.0)
    assert at_zero[0].games == 400 and at_zero[3].games == 300
    scores = scores_between(both, 4)
    mine, theirs = scores[0][1], scores[1][0]
    assert mine is not None and theirs is not None and mine + theirs == pytest.approx(1.0)


def test_whoever_has_no_game_stands_last_without_a_rating() -> None:
    results = {(0, 1): games_between(0.0, 100.0, groups=20, rng=np.random.default_rng(1))}
    rows = standings(results, contenders=3, teams=2, anchor=Anchor(0, 0.0), aborted=[0, 0, 3], most=3)
    assert rows[-1].place == 2 and rows[-1].rating is None and rows[-1].retired and not rows[0].retired


def test_a_batch_comes_back_from_its_record_exactly() -> None:
    result = games_between(0.0, 30.0, groups=7, rng=np.random.default_rng(4))
    again = result_of(played_batch(BatchKey(0, (0, 1), 3), 3, 14, result), 2)
    assert np.array_equal(again.team_returns, result.team_returns) and again.steps == result.steps
    assert np.array_equal(again.wins, result.wins) and np.array_equal(again.group_scores, result.group_scores)
    none = score_games(np.zeros((2, 0, 2)), 5)
    assert result_of(played_batch(BatchKey(0, (0, 1), 0), 0, 4, none), 2).games == 0
