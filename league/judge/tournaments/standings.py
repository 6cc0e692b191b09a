"""Standings of a tournament: one rating scale with intervals, fixed at an anchor.

Games of two teams: Bradley-Terry on the scores of all pairings, in Elo. More teams: openskill on the placements of
every game. One team: the mean return.

Shape letters: C contenders, P pairings, T teams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from league.core.metagame.ratings import ELO_PER_LOGIT, INTERVAL_Z, PairGames, bradley_terry
from league.envs.placements import comparable
from league.judge.matches.match_result import Interval, MatchResult
from league.judge.tournaments.openskill_ratings import SkillTable
from league.judge.tournaments.records import Lineup

ELO, SKILL, RETURN = "elo", "skill", "return"
"""Scales of a rating: Elo, openskill's mu (25 before the first game), or the mean return."""


@dataclass(frozen=True)
class Standing:
    """One contender's place.

    Fields:
      place: position of the contender among those given, from 0.
      rating: with its 95 % interval, on the scale of the tournament; None without a game.
      games: that counted. score: mean over games and opponents; None in a game of one team, or without a game.
      aborted: games that were aborted because it failed. retired: whether these ended its part.
    """

    place: int
    rating: Interval | None
    games: int
    score: float | None
    aborted: int
    retired: bool


@dataclass(frozen=True)
class Anchor:
    """The contender whose rating is fixed, and at what."""

    place: int
    rating: float


def scale_of(teams: int) -> str:
    """The scale on which a game of so many teams is rated."""
    return RETURN if teams == 1 else ELO if teams == 2 else SKILL


def standings(
    results: Mapping[Lineup, MatchResult],
    *,
    contenders: int,
    teams: int,
    anchor: Anchor,
    aborted: Sequence[int],
    most: int,
) -> tuple[Standing, ...]:
    """The contenders, highest rating first; those without a game last.

    Args:
      results: of every pairing with a game that counts.
      contenders: C. aborted: [C] games that each failed in. most: failures that end a contender's part.
    """
    games, points = _totals(results, contenders, teams)
    by_scale = {RETURN: _by_return, ELO: _by_elo, SKILL: _by_skill}[scale_of(teams)]
    ratings = by_scale(results, contenders, anchor) if results else [None] * contenders
    rows = [
        Standing(
            place,
            ratings[place] if games[place] else None,
            games[place],
            points[place] / games[place] if games[place] and teams > 1 else None,
            aborted[place],
            aborted[place] >= most,
        )
        for place in range(contenders)
    ]
    return tuple(
        sorted(rows, key=lambda row: (row.rating is None, -(row.rating.value if row.rating else 0), row.place))
    )


def scores_between(results: Mapping[Lineup, MatchResult], contenders: int) -> list[list[float | None]]:
    """[C][C] score of the row's contender against the column's, over all games that both were in; None without one."""
    won, played = np.zeros((contenders, contenders)), np.zeros((contenders, contenders))
    for lineup, result in results.items():
        for i, first in enumerate(lineup):
            for j, second in enumerate(lineup):
                if i != j:
                    wins, draws, losses = result.counts(i, j)
                    won[first, second] += wins + draws / 2
                    played[first, second] += wins + draws + losses
    return [
        [float(won[row, column] / played[row, column]) if played[row, column] else None for column in range(contenders)]
        for row in range(contenders)
    ]


def _totals(results: Mapping[Lineup, MatchResult], contenders: int, teams: int) -> tuple[list[int], list[float]]:
    games, points = [0] * contenders, [0.0] * contenders
    for lineup, result in results.items():
        for i, contender in enumerate(lineup):
            games[contender] += result.games
            points[contender] += result.games * float(result.group_scores[:, i].mean()) if teams > 1 else 0.0
    return games, points


def _by_elo(results: Mapping[Lineup, MatchResult], contenders: int, anchor: Anchor) -> list[Interval | None]:
    """Bradley-Terry; games whose groups end alike count as fewer, as in `MatchResult.score`."""
    meetings: dict[tuple[int, int], tuple[float, float]] = {}
    for (first, second), result in results.items():
        games = result.effective_games()
        score = float(result.group_scores[:, 0].mean())
        low, high = min(first, second), max(first, second)
        mine = games * (score if first == low else 1.0 - score)
        before = meetings.get((low, high), (0.0, 0.0))
        meetings[low, high] = (before[0] + mine, before[1] + games)
    pairs = PairGames(
        first=np.array([first for first, _ in meetings], np.int64),
        second=np.array([second for _, second in meetings], np.int64),
        score=np.array([score for score, _ in meetings.values()], np.float64),
        games=np.array([games for _, games in meetings.values()], np.float64),
    )
    parents = np.full(contenders, -1, np.int64)
    logits, deviations = bradley_terry(contenders, pairs, parents=parents, anchor=anchor.place, parent_draws=0.0)
    elo, margin = anchor.rating + ELO_PER_LOGIT * logits, INTERVAL_Z * ELO_PER_LOGIT * deviations
    return [Interval(float(elo[i]), float(elo[i] - margin[i]), float(elo[i] + margin[i])) for i in range(contenders)]


def _by_skill(results: Mapping[Lineup, MatchResult], contenders: int, anchor: Anchor) -> list[Interval | None]:
    """Openskill over every game in turn, shifted so that the anchor stands at its rating."""
    table = SkillTable()
    for lineup, result in sorted(results.items()):
        rotations, groups, teams = result.team_returns.shape
        members = [lineup[min(team, len(lineup) - 1)] for team in range(teams)]
        if len(set(members)) < 2:
            continue
        line = [Counter([str(member)]) for member in members]
        for group in range(groups):
            for rotation in range(rotations):
                returns = comparable(result.team_returns[rotation, group])
                table.rate(line, tuple(int((returns > own).sum()) for own in returns))
    skills = {int(name): (mu, sigma) for name, mu, sigma in table.skills()}
    shift = anchor.rating - skills.get(anchor.place, (anchor.rating, 0.0))[0]
    return [
        Interval(
            skills[i][0] + shift,
            skills[i][0] + shift - INTERVAL_Z * skills[i][1],
            skills[i][0] + shift + INTERVAL_Z * skills[i][1],
        )
        if i in skills
        else None
        for i in range(contenders)
    ]


def _by_return(results: Mapping[Lineup, MatchResult], contenders: int, anchor: Anchor) -> list[Interval | None]:
    return [results[(i,)].mean_return() if (i,) in results else None for i in range(contenders)]
