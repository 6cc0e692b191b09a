"""Facts of a game that settings depend on: its spec, and the statistics and costs that random play measures.

Shape letters: S seats of a game.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from league.envs.facts.number_sizes import NumberSize
from league.envs.protocol import EnvSpec

Play = Literal["turn_based", "simultaneous", "one_shot", "mixed"]

ENOUGH_EPISODES, ENOUGH_VALUES = 10, 3
"""Episodes, or distinct returns, from which seats that always returned the same are taken for a team. So many episodes
also tell that returns only ever say won, drawn or lost."""

LARGE_INPUT = 10.0
"""Observed numbers beyond this size count as large: a network with weights of the usual size wants smaller ones."""


@dataclass(frozen=True)
class Spread:
    """Statistics of one quantity. deviation: its standard deviation; p5, p95: its percentiles."""

    mean: float
    deviation: float
    low: float
    p5: float
    p95: float
    high: float

    @property
    def size(self) -> float:
        """The larger of both percentiles by its distance from 0; of the bounds where both are 0."""
        return max(abs(self.p5), abs(self.p95)) or max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class FieldRange:
    """Range of one observation field under random play.

    large: fraction of its numbers beyond `LARGE_INPUT`.
    """

    low: float
    high: float
    large: float


@dataclass(frozen=True)
class GameCosts:
    """Measured costs of a game; those of steps at a core's usual speed, see `core_speed`, unless the game waits.

    Fields:
      make_s: seconds to make one more game. make_mib: memory that it takes.
      reset_s: seconds to reset one game.
      call_s: seconds of one call of `step`, whatever the number of games.
      game_s: seconds that each game adds to such a call.
    """

    make_s: float
    make_mib: float
    reset_s: float
    call_s: float
    game_s: float

    def turn_s(self, num_envs: int) -> float:
        """Seconds per game and turn if `num_envs` games are stepped together."""
        return self.call_s / num_envs + self.game_s


@dataclass(frozen=True)
class GameFacts:
    """Facts of a game, known from its spec or measured under random play.

    Fields:
      spec: of the game.
      play: "turn_based" (one seat acts at a time), "simultaneous" (all seats act in every turn), "one_shot" (all act,
        once), or "mixed".
      episodes: number of finished episodes; where 0, lengths are a guess (see `game_statistics`), returns unknown.
      turns: turns of an episode. decisions: decisions of one seat in an episode.
      acting: mean number of seats that act in one turn of one game.
      returns: [S] returns of each seat; empty if unknown.
      margin: difference between the returns of two teams; None if unknown or if there is one team.
      return_values: the distinct returns if there are at most three; else empty.
      final_only: True if no reward came before the end of an episode.
      zero_sum: True if returns differed and those of all seats always summed to the same number.
      equal_seats: groups of seats that returned the same in every episode, or nearly so, see `shared_returns`; that
        earned the same in every turn where no episode has ended.
      roles: groups of seats that may share networks, where not all seats with equal spaces may; empty otherwise.
      roles_differ: why not, see `seat_roles`.
      interaction: share of the variance of rewards that the actions of two opponents explain only together, see
        `joint_actions`; None if unknown.
      truncated: fraction of the episodes that were cut off.
      legal: mean number of legal actions of a decision. log_legal: mean of its natural logarithm (0 for a box).
      ranges: observation field -> its range.
      sizes: label of a field -> sizes of the numbers of its last axis, see `number_sizes`.
      surprises: True if the same observation and action of a turn-based game were followed by different turns: the
        game hides something from the acting seat, or draws lots.
      shared_views: True if all seats of such a game were seen to see the same, so that it draws lots and hides nothing.
      past_counts: True if the start of an episode tells what an observation does not, see `history` and
        `past_regression`. Only lone seats, and seats that act at once, are looked at.
      last_step_counts: True if the step before tells it, as a speed that is not seen.
      time_is_hidden: True if a limit ends episodes of several seats that do not show how long they last, see
        `hidden_time`.
      limit_is_shown: True if a lone seat sees that a time limit has been reached, see `shown_limit`.
      endings: estimated number of ways in which the seats can play one deal; None if unknown, see `game_statistics`.
      has_tree: True if the game says itself what its histories are, see `league.envs.decision_tree`.
      copyable: True if games can be copied for bots that try moves out.
      liberties: what its code did to the process of random play, see `league.envs.guard`; empty for a tame game.
      costs: measured costs; None if nothing was timed.
    """

    spec: EnvSpec
    play: Play
    episodes: int
    turns: Spread
    decisions: Spread
    acting: float = 1.0
    returns: tuple[Spread, ...] = ()
    margin: Spread | None = None
    return_values: tuple[float, ...] = ()
    final_only: bool = True
    zero_sum: bool = False
    equal_seats: tuple[tuple[int, ...], ...] = ()
    roles: tuple[tuple[int, ...], ...] = ()
    roles_differ: str = ""
    interaction: float | None = None
    truncated: float = 0.0
    legal: float = 2.0
    log_legal: float = 0.7
    ranges: Mapping[str, FieldRange] = field(default_factory=dict)
    sizes: Mapping[str, tuple[NumberSize, ...]] = field(default_factory=dict)
    surprises: bool = False
    shared_views: bool = False
    past_counts: bool = False
    last_step_counts: bool = False
    time_is_hidden: bool = False
    limit_is_shown: bool = False
    endings: float | None = None
    has_tree: bool = False
    copyable: bool = False
    liberties: tuple[str, ...] = ()
    costs: GameCosts | None = None

    @property
    def is_competitive(self) -> bool:
        """True if there are at least two teams."""
        return self.spec.num_teams > 1

    @property
    def is_simultaneous(self) -> bool:
        """True if several seats act at once in at least some turns."""
        return self.play != "turn_based"

    @property
    def hides(self) -> bool:
        """True if a seat does not see the whole position: the spec says so.

        Where no spec can say it, surprises in random play count as hidden things, unless all seats were seen to see
        the same.
        """
        if self.spec.num_seats == 1:
            return False
        if self.spec.hidden_information:
            return True
        return self.surprises and not self.spec.information_known and not self.shared_views

    @property
    def wins_only(self) -> bool:
        """True if a return only says won, drawn or lost: the spec says so, or at most three even-spaced values came.

        In fewer episodes than `ENOUGH_EPISODES` any returns are as few; there only -1, 0 and 1 are taken for it.
        Rewards before the end of a game are counts of something that random play rarely does, such as hits.
        """
        if self.spec.win_draw_loss:
            return True
        values = self.return_values
        if not (self.is_competitive and self.final_only) or len(values) < 2 or self.spec.return_range is not None:
            return False
        if self.episodes < ENOUGH_EPISODES and not set(values) <= {-1.0, 0.0, 1.0}:
            return False
        return len(values) == 2 or abs(values[0] + values[2] - 2 * values[1]) <= 1e-4 * (values[2] - values[0])

    @property
    def return_bounds(self) -> tuple[float, float] | None:
        """Least and largest return of a seat: as the spec has them, else as random play met them; None if unknown."""
        if self.spec.return_range is not None:
            return self.spec.return_range
        if not self.returns:
            return None
        return min(one.low for one in self.returns), max(one.high for one in self.returns)
