"""Formats: who meets whom, as a function of the results so far alone."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from league.errors import LeagueError
from league.judge.tournaments.formats import (
    FORMATS,
    Format,
    PairScore,
    Round,
    format_named,
    gauntlet,
    ladder,
    ladder_order,
    round_robin,
    swiss,
    swiss_points,
)
from league.judge.tournaments.records import Lineup


def played_out(format: Format, strengths: list[float], *, limit: int = 0) -> list[tuple[Lineup, ...]]:
    """The pairings of every round, if the stronger always wins."""
    rounds: list[Round] = []
    pairings = []
    while lineups := format(len(strengths), 2, rounds, limit):
        pairings.append(lineups)
        rounds.append(
            tuple(PairScore((a, b), (1.0, 0.0) if strengths[a] > strengths[b] else (0.0, 1.0)) for a, b in lineups)
        )
        assert len(pairings) < 100
    return pairings


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("contenders", [2, 3, 7, 8])
def test_every_format_ends_and_lets_nobody_meet_itself_or_two_at_once(name: str, contenders: int) -> None:
    format = format_named(name)
    rounds = played_out(format, [float(one) for one in range(contenders)])
    assert rounds
    for lineups in rounds:
        assert all(len(set(lineup)) == 2 and max(lineup) < contenders for lineup in lineups)
        if name in ("ladder", "swiss"):
            assert max(Counter(itertools.chain(*lineups)).values()) == 1
    assert rounds == played_out(format, [float(one) for one in range(contenders)]), "a pure function"


def test_everyone_meets_everyone_or_the_first_meets_all() -> None:
    assert round_robin(4, 2, (), 0) == ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    assert gauntlet(4, 2, (), 0) == ((0, 1), (0, 2), (0, 3))
    assert round_robin(3, 1, (), 0) == ((0,), (1,), (2,))
    assert round_robin(4, 3, (), 0) == ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))
    assert set(round_robin(2, 3, (), 0)) == {(0, 1), (1, 0)}, "too few to fill the game: the other takes the rest"


def test_a_ladder_sorts_contenders_whatever_their_first_order() -> None:
    for strengths in itertools.permutations([1.0, 2.0, 3.0, 4.0]):
        rounds: list[Round] = []
        for lineups in played_out(ladder, list(strengths)):
            rounds.append(
                tuple(
                    PairScore((a, b), (float(strengths[a] > strengths[b]), float(strengths[b] > strengths[a])))
                    for a, b in lineups
                )
            )
        assert [strengths[one] for one in ladder_order(4, rounds)] == [4.0, 3.0, 2.0, 1.0]


def test_swiss_rounds_pair_equal_points_nobody_twice_and_rest_the_lowest_once() -> None:
    rounds = played_out(swiss, [float(-one) for one in range(8)])
    assert len(rounds) == 3 and len({frozenset(pair) for lineups in rounds for pair in lineups}) == 12
    results = [tuple(PairScore((a, b), (float(a < b), float(b < a))) for a, b in lineups) for lineups in rounds]
    assert swiss_points(8, results)[0] == 3.0
    odd = played_out(swiss, [float(-one) for one in range(5)], limit=4)
    rested = [({*range(5)} - {*itertools.chain(*lineups)}).pop() for lineups in odd]
    assert len(rested) == 4 == len(set(rested))


def test_formats_that_cannot_be_played_are_refused_in_one_sentence() -> None:
    for name, contenders, teams, limit in (("swiss", 4, 3, 0), ("ladder", 4, 1, 0), ("swiss", 4, 2, 4)):
        with pytest.raises(LeagueError, match=f"--{'rounds' if limit else 'format'} "):
            format_named(name)(contenders, teams, (), limit)
    with pytest.raises(LeagueError, match="did you mean 'swiss'"):
        format_named("swis")
    with pytest.raises(LeagueError, match="take --format gauntlet"):
        round_robin(60, 4, (), 0)
