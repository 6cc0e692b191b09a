"""Returns, lengths and scores of a player's last games, seat by seat."""

from __future__ import annotations

import dataclasses

import pytest

from league.core.state.episodes import RECENT_GAMES, Episodes
from league.core.state.records import AssignmentOutcome
from league.core.state.scoring import BY_WINS


def outcome(
    policies: tuple[str, ...], *, games: int, won: int, returns: tuple[float, ...], decisions: int = 0
) -> AssignmentOutcome:
    """Games of two seats of which the first seat won some and drew none."""
    wins = ((0, won), (games - won, 0))
    return AssignmentOutcome(policies, games, 0, decisions, wins, ((0, 0), (0, 0)), returns)


def test_each_seat_has_the_mean_of_the_games_in_which_the_player_held_it() -> None:
    known = Episodes()
    first = outcome(("main-0", "main-0-s0"), games=10, won=8, returns=(6.0, -6.0), decisions=70)
    second = outcome(("main-0-s0", "main-0"), games=30, won=15, returns=(0.0, -3.0), decisions=150)
    known.record("main-0", first, teams=(0, 1), scoring=BY_WINS)
    known.record("main-0", second, teams=(0, 1), scoring=BY_WINS)
    assert known.seat_returns == pytest.approx((0.6, -0.1))
    assert known.seat_games == (10.0, 30.0)
    assert known.mean_return == pytest.approx((6.0 - 3.0) / 40.0)
    assert known.decisions == pytest.approx(220 / 40)
    assert known.score == pytest.approx((8 + 15) / 40)


def test_games_against_itself_have_returns_and_no_score() -> None:
    known = Episodes()
    known.record("main-0", outcome(("main-0",) * 2, games=4, won=3, returns=(2.0, -2.0)), teams=(0, 1), scoring=BY_WINS)
    assert known.seat_returns == (0.5, -0.5)
    assert known.mean_return == 0.0
    assert known.score_games == 0.0


def test_a_game_of_one_team_has_a_return_and_a_length() -> None:
    known = Episodes()
    alone = AssignmentOutcome(("main-0",), 5, 0, 100, ((0,),), ((0,),), (60.0,))
    known.record("main-0", alone, teams=(0,), scoring=BY_WINS)
    assert (known.mean_return, known.decisions, known.score_games) == (12.0, 20.0, 0.0)


def test_no_game_changes_nothing() -> None:
    known = Episodes()
    before = dataclasses.replace(known)
    known.record("main-0", outcome(("main-0", "b"), games=0, won=0, returns=(0.0, 0.0)), teams=(0, 1), scoring=BY_WINS)
    assert known == before
    assert known.mean_return is None


def test_old_games_fade() -> None:
    known = Episodes()
    old = outcome(("main-0", "b"), games=10_000, won=0, returns=(-10_000.0, 10_000.0))
    new = outcome(("main-0", "b"), games=1_000, won=1_000, returns=(1_000.0, -1_000.0))
    for _ in range(10):
        known.record("main-0", old, teams=(0, 1), scoring=BY_WINS)
    assert (known.games, known.score) == (RECENT_GAMES, 0.0)
    for _ in range(10):
        known.record("main-0", new, teams=(0, 1), scoring=BY_WINS)
    assert known.score > 0.99
    assert known.mean_return == pytest.approx(1.0, abs=0.01)
