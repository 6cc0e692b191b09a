"""Statistics of games as they are played: lengths, returns, legal actions, observed ranges and surprises.

Shape letters: N games at once, G finished games, S seats, K slots, A actions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import log_endings
from league.envs.facts.game_facts import ENOUGH_EPISODES, LARGE_INPUT, FieldRange, GameCosts, GameFacts, Play, Spread
from league.envs.facts.hidden_time import HiddenTime
from league.envs.facts.history import History
from league.envs.facts.joint_actions import JointActions
from league.envs.facts.number_sizes import NumberSizes
from league.envs.facts.past_regression import PastRegression
from league.envs.facts.seat_roles import SeatRoles
from league.envs.facts.shared_returns import seats_paid_alike, seats_with_one_interest
from league.envs.facts.shown_limit import ShownLimit
from league.envs.protocol import EnvSpec, Turn

MAX_REMEMBERED = 4_096
"""Decisions in which surprises are looked for."""

MAX_REWARDS = 500
"""Rewards of turns that are kept until an episode has ended."""

MAX_VALUES = 3
"""Distinct returns that a game of won, drawn and lost may have."""

UNENDED_TURNS, MAX_GUESSED_TURNS = 200, 1_000
"""Length of an episode where none has ended: the first if the spec has no bound, at most the second if it has."""

MAX_LOG_ENDINGS = 700.0
"""Logarithm of the most endings that are counted; more are as many as that."""

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
        self._turns: list[int] = []
        self._decisions: list[int] = []
        self._returns: list[NDArray[np.float64]] = []
        self._rewards: list[NDArray[np.float64]] = []
        self._gaps: list[int] = []
        self._acting: list[float] = []
        self._most_at_once, self._fewest_at_once = 0, spec.num_seats
        self._truncated = 0
        self._early_rewards = False
        self._legal: list[float] = []
        self._log_legal: list[float] = []
        self._log_ways: list[float] = []
        self._ranges: dict[str, tuple[float, float, float, int]] = {}
        self._sizes = NumberSizes(spec)
        self._successors: dict[tuple[object, ...], tuple[object, ...]] = {}
        self._surprises = False
        self._joint_actions = JointActions(spec)
        self._roles = SeatRoles(spec, num_envs=num_envs)
        self._time = HiddenTime(spec)
        self._limit = ShownLimit(spec)
        self._history = History() if spec.num_seats == 1 else None
        self._past = PastRegression(spec)
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._lengths = np.zeros(num_envs, np.int64)
        self._own = np.zeros((num_envs, self._spec.num_seats), np.int64)
        self._ways = np.zeros(num_envs)
        self._unpaid = np.zeros(num_envs, np.int64)
        self._last: list[tuple[object, ...] | None] = [None] * num_envs
        self._roles.restart(num_envs=num_envs)
        self._past.restart()
        if self._history is not None:
            self._history.restart(num_envs=num_envs)

    @property
    def num_episodes(self) -> int:
        """Number of finished episodes."""
        return len(self._turns)

    @property
    def num_turns(self) -> int:
        """Number of turns of all games together."""
        return len(self._acting)

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        num_envs = len(self._lengths)
        acting = np.bincount(turn.env_index, minlength=num_envs)
        self._acting.append(float(acting.mean()))
        self._most_at_once = max(self._most_at_once, int(acting.max()))
        self._fewest_at_once = min(self._fewest_at_once, int(acting.min()))
        self._lengths += 1
        self._time.decided(turn, self._own[turn.env_index, turn.seat])
        self._own[turn.env_index, turn.seat] += 1
        self._limit.decided(turn)
        self._count_legal(turn)
        self._note_ranges(turn)
        self._sizes.note(turn)
        self._look_for_surprises(turn, actions)
        self._joint_actions.decided(turn, actions, num_envs=num_envs)
        self._roles.decided(turn, actions)
        if self._acts_at_once():
            self._past.decided(turn, actions)
        if self._history is not None:
            self._history.decided(turn, actions)

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        self._joint_actions.stepped(turn)
        self._roles.stepped(turn)
        self._limit.stepped(turn)
        if self._acts_at_once():
            self._past.stepped(turn)
        if self._history is not None:
            self._history.stepped(turn)
        going = ~turn.ended[turn.env_index]
        rows = turn.env_index[going], turn.seat[going]
        self._early_rewards = self._early_rewards or bool(np.any(turn.rewards[rows] != 0.0))
        self._note_rewards(turn)
        for game in np.flatnonzero(turn.ended):
            self._turns.append(int(self._lengths[game]))
            self._decisions.extend(int(count) for count in self._own[game])
            self._returns.append(turn.returns[game].astype(np.float64))
            self._truncated += bool(turn.truncated[game])
            self._log_ways.append(float(self._ways[game]))
            self._last[game] = None  # all may see where a game starts
        self._lengths[turn.ended] = 0
        self._unpaid[turn.ended] = 0
        self._own[turn.ended] = 0
        self._ways[turn.ended] = 0.0

    def facts(self, *, copyable: bool, has_tree: bool, shared_views: bool, costs: GameCosts | None) -> GameFacts:
        """Everything seen so far, with what others found out."""
        spec, returns = self._spec, np.array(self._returns).reshape(-1, self._spec.num_seats)
        values = np.unique(returns.round(RETURN_DIGITS) + 0.0)  # without the second zero, -0.0
        spreads = tuple(spread(returns[:, seat]) for seat in range(spec.num_seats)) if len(returns) else ()
        enough = self.num_episodes >= ENOUGH_EPISODES
        start_counts, last_step_counts = self._past.found()
        roles, why = self._roles.groups([one.size for one in spreads] if enough else [])
        return GameFacts(
            spec=spec,
            play=self._play(),
            episodes=self.num_episodes,
            turns=spread(self._turns or self._lengths * self._guess()),
            decisions=spread(self._decisions or self._own.reshape(-1) * self._guess()),
            acting=float(np.mean(self._acting)),
            returns=spreads,
            margin=_margin(spec, returns),
            return_values=tuple(map(float, values)) if 0 < len(values) <= MAX_VALUES else (),
            final_only=not self._early_rewards,
            zero_sum=_is_constant(returns.sum(axis=1)) and not _is_constant(returns),
            equal_seats=self._teams(returns),
            roles=roles,
            roles_differ=why,
            interaction=self._joint_actions.interaction(),
            truncated=self._truncated / max(self.num_episodes, 1),
            legal=float(np.mean(self._legal)) if self._legal else 0.0,
            log_legal=float(np.mean(self._log_legal)) if self._log_legal else 0.0,
            ranges={
                name: FieldRange(low, high, large / max(count, 1))
                for name, (low, high, large, count) in self._ranges.items()
            },
            sizes=self._sizes.sizes(),
            surprises=self._surprises,
            shared_views=shared_views,
            past_counts=start_counts or (self._history is not None and self._history.past_counts),
            last_step_counts=last_step_counts,
            time_is_hidden=self._time.is_hidden(self._turns),
            limit_is_shown=self._limit.is_shown(),
            endings=self._endings(),
            has_tree=has_tree,
            copyable=copyable,
            costs=costs,
        )

    def _note_rewards(self, turn: Turn) -> None:
        """Keep the rewards of turns in which all seats act, until enough episodes have ended to tell more."""
        self._unpaid += 1
        paid = np.flatnonzero(turn.rewards.any(axis=1))
        if self._lacks_episodes() and len(self._rewards) < MAX_REWARDS and self._fewest_at_once == self._spec.num_seats:
            self._rewards.extend(turn.rewards[paid].astype(np.float64))
            self._gaps.extend(self._unpaid[paid].tolist())
        self._unpaid[paid] = 0

    def _teams(self, returns: NDArray[np.float64]) -> tuple[tuple[int, ...], ...]:
        """Groups of seats with one interest, by what was returned, or by rewards where few episodes have ended."""
        found = seats_with_one_interest(returns, self._turns)
        if found or not self._lacks_episodes():
            return found
        alike = seats_paid_alike(np.array(self._rewards).reshape(-1, self._spec.num_seats), self._gaps)
        return tuple(group for group in alike if not np.ptp(returns[:, list(group)], axis=1).any())

    def _lacks_episodes(self) -> bool:
        """True while too few episodes have ended to tell by their returns who wants the same."""
        return self.num_episodes < ENOUGH_EPISODES

    def _endings(self) -> float | None:
        """Estimated number of endings of one deal; None where no game has ended, or actions are not numbered."""
        if not self._log_ways or self._spec.actions.kind != "categorical":
            return None
        return math.exp(min(log_endings(self._log_ways), MAX_LOG_ENDINGS))

    def _guess(self) -> float:
        """Factor from the present length of the games to a whole one, where no episode has ended."""
        bound = UNENDED_TURNS if self._spec.max_turns is None else min(self._spec.max_turns, MAX_GUESSED_TURNS)
        return max(bound / max(float(self._lengths.mean()), 1.0), 1.0)

    def _acts_at_once(self) -> bool:
        """True if there is one seat, or several have acted in every turn so far."""
        return self._spec.num_seats == 1 or self._fewest_at_once > 1

    def _play(self) -> Play:
        if self._most_at_once <= 1:
            return "turn_based"
        if self._fewest_at_once < self._spec.num_seats:
            return "mixed"
        return "one_shot" if self._turns and max(self._turns) == 1 else "simultaneous"

    def _count_legal(self, turn: Turn) -> None:
        if self._spec.actions.kind != "categorical":
            nvec = self._spec.actions.nvec
            self._legal.append(float(np.prod(nvec, dtype=np.float64)) if nvec else 0.0)
            self._log_legal.append(float(np.log(nvec).sum()) if nvec else 0.0)
            return
        mask, num_actions = turn.action_mask, self._spec.actions.num_actions
        legal = np.full(turn.env_index.size, num_actions) if mask is None else mask.sum(axis=1)
        self._legal.append(float(legal.mean()))
        logs = np.log(np.maximum(legal, 1))
        self._log_legal.append(float(logs.mean()))
        self._ways += np.bincount(turn.env_index, weights=logs, minlength=len(self._ways))

    def _note_ranges(self, turn: Turn) -> None:
        for name, array in turn.obs.items():
            is_bytes = array.dtype == np.uint8  # images, which take eight times the memory in another type
            numbers = array if is_bytes else np.asarray(array, np.float64)
            low, high, large, count = self._ranges.get(name, (np.inf, -np.inf, 0.0, 0))
            self._ranges[name] = (
                min(low, float(numbers.min()) if numbers.size else np.inf),
                max(high, float(numbers.max()) if numbers.size else -np.inf),
                large + float(np.count_nonzero((numbers if is_bytes else np.abs(numbers)) > np.array(LARGE_INPUT))),
                count + numbers.size,
            )

    def _look_for_surprises(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """Note which turn follows which decision, as long as one seat acts at a time."""
        if self._surprises or len(self._successors) >= MAX_REMEMBERED or turn.env_index.size != len(self._lengths):
            return
        for slot, game in enumerate(turn.env_index.tolist()):
            seen = (int(turn.seat[slot]), *(array[slot].tobytes() for array in turn.obs.values()))
            before = self._last[game]
            if before is not None and self._successors.setdefault(before, seen) != seen:
                self._surprises = True
            self._last[game] = (*seen, actions[slot].tobytes())


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
