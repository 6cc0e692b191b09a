"""Statistics of games as they are played: lengths, returns, legal actions, observed ranges and surprises.

Shape letters: N games at once, G finished games, S seats, K slots, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.facts.game_facts import ENOUGH_EPISODES, GameCosts, GameFacts, Play, Spread
from league.envs.facts.hidden_time import HiddenTime
from league.envs.facts.history import History
from league.envs.facts.joint_actions import JointActions
from league.envs.facts.number_sizes import NumberSizes
from league.envs.facts.past_regression import PastRegression
from league.envs.facts.seat_roles import SeatRoles
from league.envs.facts.shared_returns import seats_paid_alike, seats_with_one_interest
from league.envs.facts.turn_counts import ActingSeats, FieldRanges, LegalActions, Successors
from league.envs.protocol import EnvSpec, Turn

MAX_VALUES = 3
"""Distinct returns that a game of won, drawn and lost may have."""

RETURN_DIGITS = 4
"""Decimal places to which two returns count as equal."""


class GameStatistics:
    """Collects what happens in N games; call `decided` and `stepped` in turn for every step.

    Args:
      spec: of the game.
      num_envs: N.
    """

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        self._spec = spec
        self._episodes = EpisodeLog(spec, num_envs=num_envs)
        self._acting = ActingSeats(spec.num_seats)
        self._legal = LegalActions(spec, num_envs=num_envs)
        self._payments = Payments(num_envs=num_envs)
        self._successors = Successors(num_envs=num_envs)
        self._ranges, self._sizes = FieldRanges(), NumberSizes(spec)
        self._joint_actions = JointActions(spec)
        self._roles = SeatRoles(spec, num_envs=num_envs)
        self._time, self._limit = HiddenTime(spec), ShownLimit(spec)
        self._past = PastRegression(spec)
        self._history = History() if spec.num_seats == 1 else None
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        for part in (self._episodes, self._legal, self._payments, self._successors, self._roles):
            part.restart(num_envs=num_envs)
        self._past.restart()
        if self._history is not None:
            self._history.restart(num_envs=num_envs)

    @property
    def num_episodes(self) -> int:
        """Number of finished episodes."""
        return len(self._episodes)

    @property
    def num_turns(self) -> int:
        """Number of turns of all games together."""
        return len(self._acting.means)

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        num_envs = len(self._episodes.own)
        self._acting.decided(turn, num_envs=num_envs)
        self._time.decided(turn, self._episodes.own[turn.env_index, turn.seat])
        for part in (self._episodes, self._limit, self._legal, self._ranges):
            part.decided(turn)
        self._sizes.note(turn)
        self._successors.decided(turn, actions)
        self._joint_actions.decided(turn, actions, num_envs=num_envs)
        self._roles.decided(turn, actions)
        if self._acts_at_once():
            self._past.decided(turn, actions)
        if self._history is not None:
            self._history.decided(turn, actions)

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        everyone_acts = self._acting.fewest == self._spec.num_seats
        self._payments.stepped(turn, keep=self._episodes.is_short and everyone_acts)
        for part in (self._joint_actions, self._roles, self._limit, self._episodes, self._legal, self._successors):
            part.stepped(turn)
        if self._acts_at_once():
            self._past.stepped(turn)
        if self._history is not None:
            self._history.stepped(turn)

    def facts(self, *, copyable: bool, has_tree: bool, shared_views: bool, costs: GameCosts | None) -> GameFacts:
        """Everything seen so far, with what others found out."""
        spec, returns = self._spec, self._episodes.returns
        values = np.unique(returns.round(RETURN_DIGITS) + 0.0)  # without the second zero, -0.0
        spreads = tuple(spread(returns[:, seat]) for seat in range(spec.num_seats)) if len(returns) else ()
        start_counts, last_step_counts = self._past.found()
        roles, why = self._roles.groups([one.size for one in spreads] if not self._episodes.is_short else [])
        return GameFacts(
            spec=spec,
            play=self._play(),
            episodes=self.num_episodes,
            turns=spread(self._episodes.turns),
            decisions=spread(self._episodes.decisions),
            acting=float(np.mean(self._acting.means)),
            returns=spreads,
            margin=_margin(spec, returns),
            return_values=tuple(map(float, values)) if 0 < len(values) <= MAX_VALUES else (),
            final_only=not self._payments.are_early,
            zero_sum=_is_constant(returns.sum(axis=1)) and not _is_constant(returns),
            equal_seats=self._teams(returns),
            roles=roles,
            roles_differ=why,
            interaction=self._joint_actions.interaction(),
            truncated=self._episodes.truncated / max(self.num_episodes, 1),
            legal=float(np.mean(self._legal.counts)) if self._legal.counts else 0.0,
            log_legal=float(np.mean(self._legal.logs)) if self._legal.logs else 0.0,
            ranges=self._ranges.found(),
            sizes=self._sizes.sizes(),
            surprises=self._successors.differ,
            shared_views=shared_views,
            past_counts=start_counts or (self._history is not None and self._history.past_counts),
            last_step_counts=last_step_counts,
            time_is_hidden=self._time.is_hidden(self._episodes.ended_turns),
            limit_is_shown=self._limit.is_shown(),
            endings=self._legal.endings(),
            has_tree=has_tree,
            copyable=copyable,
            costs=costs,
        )

    def _teams(self, returns: NDArray[np.float64]) -> tuple[tuple[int, ...], ...]:
        """Groups of seats with one interest, by what was returned, or by rewards where few episodes have ended."""
        found = seats_with_one_interest(returns, self._episodes.ended_turns)
        if found or not self._episodes.is_short:
            return found
        alike = seats_paid_alike(self._payments.rewards(self._spec.num_seats), self._payments.gaps)
        return tuple(group for group in alike if not np.ptp(returns[:, list(group)], axis=1).any())

    def _acts_at_once(self) -> bool:
        """True if there is one seat, or several have acted in every turn so far."""
        return self._spec.num_seats == 1 or self._acting.fewest > 1

    def _play(self) -> Play:
        if self._acting.most <= 1:
            return "turn_based"
        if self._acting.fewest < self._spec.num_seats:
            return "mixed"
        return "one_shot" if max(self._episodes.ended_turns, default=0) == 1 else "simultaneous"


def spread(values: Sequence[float] | NDArray[np.generic]) -> Spread:
    """The statistics of at least one number."""
    numbers = np.asarray(values, np.float64)
    p5, p95 = np.percentile(numbers, [5, 95])
    return Spread(
        float(numbers.mean()), float(numbers.std()), float(numbers.min()), float(p5), float(p95), float(numbers.max())
    )


def _is_constant(numbers: NDArray[np.float64]) -> bool:
    """True if some numbers do not differ along the first axis but by rounding; False for none."""
    return len(numbers) > 0 and float(np.ptp(numbers, axis=0).max()) < 1e-4 * max(1.0, float(np.abs(numbers).max()))


def _margin(spec: EnvSpec, returns: NDArray[np.float64]) -> Spread | None:
    """The difference between the mean returns of the first seat's team and every other team."""
    teams = np.array(spec.teams)
    first, others = teams == teams[0], sorted(set(spec.teams) - {spec.teams[0]})
    if not others or not len(returns):
        return None
    own = returns[:, first].mean(axis=1)
    return spread(np.concatenate([own - returns[:, teams == team].mean(axis=1) for team in others]))


MAX_REWARDS = 500
"""Rewards of turns that are kept until enough episodes have ended."""


class Payments:
    """Follows N games.

    Attributes:
      are_early: whether somebody was paid before the end of an episode.
      gaps: [R] turns since the game last paid.
    """

    def __init__(self, *, num_envs: int) -> None:
        self.are_early = False
        self.gaps: list[int] = []
        self._rewards: list[NDArray[np.float64]] = []
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._unpaid = np.zeros(num_envs, np.int64)

    def rewards(self, num_seats: int) -> NDArray[np.float64]:
        """float64 [R, S]."""
        return np.array(self._rewards).reshape(-1, num_seats)

    def stepped(self, turn: Turn, *, keep: bool) -> None:
        """The turn that the actions led to. keep: its rewards, while there is room."""
        going = ~turn.ended[turn.env_index]
        rows = turn.env_index[going], turn.seat[going]
        self.are_early = self.are_early or bool(np.any(turn.rewards[rows] != 0.0))
        self._unpaid += 1
        paid = np.flatnonzero(turn.rewards.any(axis=1))
        if keep and len(self._rewards) < MAX_REWARDS:
            self._rewards.extend(turn.rewards[paid].astype(np.float64))
            self.gaps.extend(self._unpaid[paid].tolist())
        self._unpaid[paid] = 0
        self._unpaid[turn.ended] = 0


MIN_CUT_OFF = 10
"""Episodes that a limit must have ended."""

Array = NDArray[np.float64]


class ShownLimit:
    """Collects the ranges of observed numbers; call `decided` and `stepped` in turn for every step.

    Args:
      spec: of the game.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._names = [name for name, field in spec.observations.items() if len(field.shape) <= 1]
        self._looks = spec.num_seats == 1 and bool(self._names)
        self._num_cut_off = 0
        self._decided = self._cut_off = (np.array(np.inf), np.array(-np.inf))

    def decided(self, turn: Turn) -> None:
        """A turn that is answered."""
        if self._looks:
            self._decided = self._widened(self._decided, turn.obs)

    def stepped(self, turn: Turn) -> None:
        """The turn that the answers led to."""
        if self._looks and turn.final is not None:
            self._num_cut_off += turn.final.env_index.size
            self._cut_off = self._widened(self._cut_off, turn.final.obs)

    def is_shown(self) -> bool:
        """True if one number of every last observation lay beyond all from which decisions were made."""
        if self._num_cut_off < MIN_CUT_OFF:
            return False
        (low, high), (last_low, last_high) = self._decided, self._cut_off
        return bool(np.any((last_low > high) | (last_high < low)))

    def _widened(self, known: tuple[Array, Array], obs: Mapping[str, NDArray[np.generic]]) -> tuple[Array, Array]:
        """The lowest and highest numbers, each [D], of what was known and of observations."""
        fields = [obs[name].astype(np.float64).reshape(len(obs[name]), -1) for name in self._names]
        numbers = np.concatenate(fields, axis=1)
        if not len(numbers):
            return known
        return np.minimum(known[0], numbers.min(axis=0)), np.maximum(known[1], numbers.max(axis=0))


UNENDED_TURNS, MAX_GUESSED_TURNS = 200, 1_000
"""Length of an episode where none has ended: the first if the spec has no bound, at most the second if it has."""


class EpisodeLog:
    """Follows N games.

    Attributes:
      own: int64 [N, S], decisions of each seat in the episode at hand.
      ended_turns: [E] lengths. truncated: of the ended episodes, how many were.
    """

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        self._spec = spec
        self.ended_turns: list[int] = []
        self._decisions: list[int] = []
        self._returns: list[NDArray[np.float64]] = []
        self.truncated = 0
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._lengths = np.zeros(num_envs, np.int64)
        self.own = np.zeros((num_envs, self._spec.num_seats), np.int64)

    def __len__(self) -> int:
        return len(self.ended_turns)

    @property
    def is_short(self) -> bool:
        """True while too few episodes have ended to tell by their returns who wants the same."""
        return len(self) < ENOUGH_EPISODES

    @property
    def returns(self) -> NDArray[np.float64]:
        """float64 [E, S]."""
        return np.array(self._returns).reshape(-1, self._spec.num_seats)

    @property
    def turns(self) -> list[int] | NDArray[np.floating[Any]]:
        """Lengths of the ended episodes; where there are none, a guess at those of the present ones."""
        return self.ended_turns or self._lengths * self._guess()

    @property
    def decisions(self) -> list[int] | NDArray[np.floating[Any]]:
        """Decisions of each seat of the ended episodes, or a guess."""
        return self._decisions or self.own.reshape(-1) * self._guess()

    def decided(self, turn: Turn) -> None:
        """A turn that is answered."""
        self._lengths += 1
        self.own[turn.env_index, turn.seat] += 1

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        for game in np.flatnonzero(turn.ended):
            self.ended_turns.append(int(self._lengths[game]))
            self._decisions.extend(int(count) for count in self.own[game])
            self._returns.append(turn.returns[game].astype(np.float64))
            self.truncated += bool(turn.truncated[game])
        self._lengths[turn.ended] = 0
        self.own[turn.ended] = 0

    def _guess(self) -> float:
        """Factor from the present length of the games to a whole one, where no episode has ended."""
        bound = UNENDED_TURNS if self._spec.max_turns is None else min(self._spec.max_turns, MAX_GUESSED_TURNS)
        return max(bound / max(float(self._lengths.mean()), 1.0), 1.0)
