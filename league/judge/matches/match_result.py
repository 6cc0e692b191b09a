"""Match results: counts, scores and confidence intervals.

Shape letters: T teams of a game, as many contenders in a match; R = T rotations of the contenders over the teams;
G groups: the games of one group share their opening and go once through the rotations, so that a match has G * R games.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import INTERVAL_Z
from league.envs.placements import comparable

T_95 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""Quantiles of 95 % intervals by Student's t of 1, 2, ... degrees of freedom."""
AGREEING_GROUPS = 4.0
"""Groups that the assumption that all games of a group agree counts for: few groups do not show whether they do."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MatchResult:
    """A finished match.

    Fields:
      wins: int64 [R, T, T], wins[r, i, j] = games of rotation r in which contender i returned more than contender j.
      draws: int64 [R, T, T], equal returns; symmetric, zero on the diagonal. In rotation r contender i holds the
        team (i + r) % T.
      group_scores: float64 [G, T], mean over a group's games and a contender's opponents of win 1, draw 1/2, loss 0;
        zeros where T is 1.
      team_returns: float64 [R, G, T], return of each contender's team in each game.
      steps: calls of `step` summed over the games, the opening included.
      aborted: [T] games that were aborted because the policy of a contender failed; their groups count for nobody.
        Empty where nothing can fail.
    """

    wins: NDArray[np.int64]
    draws: NDArray[np.int64]
    group_scores: NDArray[np.float64]
    team_returns: NDArray[np.float64]
    steps: int
    aborted: tuple[int, ...] = ()

    @property
    def num_groups(self) -> int:
        """G."""
        return len(self.group_scores)

    @property
    def games(self) -> int:
        """G * R."""
        return self.num_groups * len(self.wins)

    @property
    def mean_steps(self) -> float:
        """Mean length of a game in turns."""
        return self.steps / self.games

    def counts(self, contender: int = 0, opponent: int = 1) -> tuple[int, int, int]:
        """Wins, draws and losses of one contender against another, all rotations together."""
        wins, losses = self.wins[:, contender, opponent].sum(), self.wins[:, opponent, contender].sum()
        return int(wins), int(self.draws[:, contender, opponent].sum()), int(losses)

    def score(self, contender: int = 0) -> Interval:
        """Mean score of a contender over games and opponents, with a Wilson interval over `effective_games`.

        Raises:
          ValueError: the game has one team, so there is no opponent to score against.
        """
        if self.wins.shape[1] < 2:
            raise ValueError("a game of one team has no score; look at mean_return")
        return score_interval(self.group_scores[:, contender], len(self.wins))

    def effective_games(self, contender: int = 0) -> float:
        """See `effective_games`, of a contender's score."""
        return effective_games(self.group_scores[:, contender], len(self.wins))

    def by_team(self, contender: int = 0) -> tuple[float, ...]:
        """[T] mean score of a contender while it held team 0, 1, ..."""
        teams = self.wins.shape[1]
        rotations = (np.arange(teams) - contender) % teams
        points = (self.wins + self.draws / 2.0)[rotations, contender].sum(axis=1)
        return tuple(float(total) / (self.num_groups * (teams - 1)) for total in points)

    def returns_by_team(self, contender: int = 0) -> tuple[float, ...]:
        """[T] mean return of a contender's team while it was team 0, 1, ..."""
        teams = self.wins.shape[1]
        rotations = (np.arange(teams) - contender) % teams
        return tuple(float(value) for value in self.team_returns[rotations, :, contender].mean(axis=1))

    def mean_return(self, contender: int = 0) -> Interval:
        """Mean return of a contender's team, with an interval over the groups, see `mean_interval`."""
        return mean_interval(self.team_returns[:, :, contender].mean(axis=0))

    def margin(self, sizes: Sequence[int]) -> Interval:
        """Mean return of a seat of the first contender less that of its opponents' seats, see `mean_interval`.

        Args:
          sizes: [T] seats of each team.
        """
        rotations = np.arange(len(self.team_returns))[:, None]
        holds = (np.arange(len(sizes)) + rotations) % len(sizes)  # the team of each contender
        means = self.team_returns / np.asarray(sizes, np.float64)[holds][:, None, :]
        return mean_interval((means[:, :, 0] - means[:, :, 1:].mean(axis=2)).mean(axis=0))


def score_interval(scores: NDArray[np.float64], rotations: int) -> Interval:
    """The mean of the scores of groups of games, with a Wilson interval over `effective_games`; arguments as there."""
    return wilson(float(scores.mean()), effective_games(scores, rotations))


def effective_games(scores: NDArray[np.float64], rotations: int) -> float:
    """The number of independent games that say as much about a score as these.

    The games of a group may agree more than independent ones, where the opening decides or the policies hardly vary.
    Then their number is scaled down by the excess of the variance of the group means: the measured one, and that of
    groups which agree, the less there are of the former. It is never scaled up, so that a score of 0 or 1 keeps a
    width.

    Args:
      scores: float64 [G], mean score of each group. rotations: games of a group.
    """
    mean = float(scores.mean())
    bernoulli, free = mean * (1.0 - mean), len(scores) - 1
    measured = rotations * float(scores.var(ddof=1)) / bernoulli if free and bernoulli else 1.0
    excess = (AGREEING_GROUPS * rotations + free * measured) / (AGREEING_GROUPS + free)
    return rotations * len(scores) / max(excess, 1.0)


def mean_interval(groups: NDArray[np.float64]) -> Interval:
    """The mean of independent numbers with Student's 95 % interval; without bounds for one number, which has none.

    Source: Student 1908.
    """
    mean, size = float(groups.mean()), len(groups)
    half = student_95(size - 1) * float(groups.std(ddof=1)) / math.sqrt(size) if size > 1 else math.inf
    return Interval(mean, mean - half, mean + half)


def student_95(freedom: int) -> float:
    """Standard deviations that hold 95 % of Student's t, to 1e-4. freedom: degrees of freedom, at least 1.

    Source: Abramowitz and Stegun 1964, 26.7.5.
    """
    if freedom <= len(T_95):
        return T_95[freedom - 1]
    z = INTERVAL_Z
    first, second = (z**3 + z) / 4.0, (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3


def wilson(share: float, games: float) -> Interval:
    """Wilson's 95 % score interval of a mean in [0, 1] over `games` games (a draw counts as half a win).

    Source: Wilson 1927; Agresti and Coull 1998, equation 2.
    """
    z2 = INTERVAL_Z * INTERVAL_Z
    centre = (share + z2 / (2.0 * games)) / (1.0 + z2 / games)
    half = INTERVAL_Z * math.sqrt(share * (1.0 - share) / games + z2 / (4.0 * games * games)) / (1.0 + z2 / games)
    return Interval(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def score_games(team_returns: NDArray[np.float64], steps: int) -> MatchResult:
    """Count a match.

    Args:
      team_returns: float64 [R, G, T], return of each contender's team in each game, contenders in their own order.
      steps: see `MatchResult`.
    """
    teams = team_returns.shape[2]
    counted = comparable(team_returns)
    difference = counted[:, :, :, None] - counted[:, :, None, :]
    others = ~np.eye(teams, dtype=np.bool_)
    won, even = difference > 0, (difference == 0) & others
    points = (won + even / 2.0).sum(axis=3) / max(1, teams - 1)
    return MatchResult(
        wins=won.sum(axis=1),
        draws=even.sum(axis=1),
        group_scores=points.mean(axis=0),
        team_returns=team_returns,
        steps=steps,
    )


def merged(parts: Sequence[MatchResult]) -> MatchResult:
    """Several matches of the same contenders as one."""
    return MatchResult(
        wins=np.sum([part.wins for part in parts], axis=0),
        draws=np.sum([part.draws for part in parts], axis=0),
        group_scores=np.concatenate([part.group_scores for part in parts]),
        team_returns=np.concatenate([part.team_returns for part in parts], axis=1),
        steps=sum(part.steps for part in parts),
        aborted=tuple(int(count) for count in np.sum([part.aborted for part in parts], axis=0)),
    )
