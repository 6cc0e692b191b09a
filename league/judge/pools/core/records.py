"""The records of a rating pool: its game, its policies, the batches of games that workers play, and what came of them.

A group is the games of one opening, one from each team: two games where two teams play.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from league.judge.matches.sprt import PAIR_SCORES, SprtConfig

BOT, SNAPSHOT, OUTSIDE = "bot", "snapshot", "outside"
MAX_BATCH_GAMES = 4096
MAX_SECONDS = 7 * 86_400.0
ROUNDING = 1e-6
"""Relative rounding error that sums of floats from a worker may have."""


@dataclass(frozen=True)
class PoolGame:
    """The game that a pool rates.

    Fields:
      env_id, options: as in an EnvConfig.
      teams: of the game.
      opening_plies: random plies before the policies act, see `Match`.
      seats: who plays with whom and which seats share networks, the keys of an EnvConfig that are set.
    """

    env_id: str
    teams: int
    options: dict[str, object] = field(default_factory=dict)
    opening_plies: int = 2
    seats: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class PoolPolicy:
    """A policy of the pool, which never changes.

    Fields:
      name: its own in the pool.
      kind: "bot", "snapshot", or "outside" for an engine or a served policy, whose name is that of a contender.
      digest: sha256 (hex) of a snapshot's weights; else empty.
      elo: of an anchor, whose rating is certain; None for a policy that is rated.
      source: where it came from, for people.
      identity: of the contender (hex), by which workers know an outside policy again; else empty.
    """

    name: str
    kind: str
    digest: str = ""
    elo: float | None = None
    source: str = ""
    identity: str = ""


@dataclass(frozen=True)
class BatchLease:
    """A batch of games that one worker plays.

    Fields:
      lease_id: counts up over the life of the pool.
      token: of the opening of the pool that granted it; an answer that carries another is not of this lease.
      worker: who asked, for people.
      home, away: indices of the two policies.
      games: a multiple of the game's teams.
      duration_s: seconds after which it may be given up.
      test: number of the test that it is played for; 0 for the ratings alone.
    """

    lease_id: int
    token: str
    worker: str
    home: int
    away: int
    games: int
    duration_s: float
    test: int = 0


@dataclass(frozen=True)
class BatchResult:
    """Totals of the games of a lease, from the side of its home policy.

    Fields:
      wins, draws, losses: of games.
      squares: sum over the groups of the squared mean score in the group, from which the variance is known.
      seconds: the batch took on its worker.
      pairs: [5] groups of two teams by mean score 0, 1/4, 1/2, 3/4 and 1; empty for more teams, and in old journals.
    """

    wins: int
    draws: int
    losses: int
    squares: float
    seconds: float
    pairs: tuple[int, ...] = ()

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Sum of the scores of the home policy."""
        return self.wins + self.draws / 2.0


@dataclass(frozen=True)
class PoolTest:
    """A sequential test of one policy against another.

    Fields:
      number: counts them from 1. first, second: indices of the policies.
      config: the hypotheses, on the first's strength over the second.
      max_games: after which it ends undecided. by, reason: for people.
      request: by which a request that is taken up again is known; empty for none.
    """

    number: int
    first: int
    second: int
    config: SprtConfig
    max_games: int
    by: str
    reason: str
    request: str = ""


@dataclass(frozen=True)
class PoolTestAccount:
    """A test and its games.

    Fields:
      pairs: [5] pairs of games in which the first scored 0, 1/4, 1/2, 3/4 and 1 on average.
      wins, draws, losses: of games.
      outcome: "H0" or "H1" as accepted, "undecided" after all games, "withdrawn"; empty while it lasts.
      why: it ended, for people, where that is not plain.
    """

    test: PoolTest
    pairs: tuple[int, ...] = (0, 0, 0, 0, 0)
    wins: int = 0
    draws: int = 0
    losses: int = 0
    outcome: str = ""
    why: str = ""

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses


def result_problem(result: BatchResult, *, games: int, teams: int) -> str:
    """The reason why no such games can have had these totals; empty where they can."""
    counts = (result.wins, result.draws, result.losses)
    if min(counts) < 0 or result.games != games:
        return f"wins, draws and losses {counts} are not those of {games} games"
    groups = games // teams
    group_sum = result.score / teams
    low, high = group_sum**2 / groups, group_sum
    slack = ROUNDING * (1.0 + high)
    if not low - slack <= result.squares <= high + slack:
        return f"the sum of squares {result.squares:.6g} does not lie between {low:.6g} and {high:.6g}"
    if result.pairs:
        counted, squared = sum(result.pairs), float(PAIR_SCORES**2 @ result.pairs) if len(result.pairs) == 5 else -1.0
        if min(result.pairs) < 0 or counted != groups or abs(squared - result.squares) > slack:
            return f"the pairs {result.pairs} are not those of {groups} groups with these squares"
    if not (math.isfinite(result.seconds) and 0.0 <= result.seconds <= MAX_SECONDS):
        return f"a batch cannot take {result.seconds:.6g} seconds"
    return ""


@dataclass(frozen=True)
class GrantedBatch:
    """A lease with what a worker needs for it. home, away: the policies."""

    lease: BatchLease
    home: PoolPolicy
    away: PoolPolicy


@dataclass(frozen=True)
class BatchAnswer:
    """Answer to a batch that was granted.

    Fields:
      result: None where there is none. reason: why not.
      lacks: the policy that whoever was to play has not; "" for none.
      gave_up: whether nobody is to blame, as the play was stopped.
    """

    result: BatchResult | None
    reason: str = ""
    lacks: str = ""
    gave_up: bool = False
