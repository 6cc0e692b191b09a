"""Counts over the turns of games: seats that act, legal actions, ranges of fields, and decisions with two outcomes.

Shape letters: N games at once, K slots.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import log_endings
from league.envs.facts.game_facts import LARGE_INPUT, FieldRange
from league.envs.protocol import EnvSpec, Turn

MAX_REMEMBERED = 4_096
"""Decisions in which surprises are looked for."""

MAX_LOG_ENDINGS = 700.0
"""Logarithm of the most endings that are counted; more are as many as that."""


class ActingSeats:
    """Seats that act in a turn.

    Attributes:
      means: of all games, one number for each turn. most, fewest: of one game in one turn.
    """

    def __init__(self, num_seats: int) -> None:
        self.means: list[float] = []
        self.most, self.fewest = 0, num_seats

    def decided(self, turn: Turn, *, num_envs: int) -> None:
        """A turn that is answered."""
        acting = np.bincount(turn.env_index, minlength=num_envs)
        self.means.append(float(acting.mean()))
        self.most, self.fewest = max(self.most, int(acting.max())), min(self.fewest, int(acting.min()))


class LegalActions:
    """Legal actions of a decision, and the ways in which a game can be played.

    Attributes:
      counts: mean over the slots of each turn; logs: of their logarithms.
    """

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        self._actions = spec.actions
        self.counts: list[float] = []
        self.logs: list[float] = []
        self._log_ways: list[float] = []
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._ways = np.zeros(num_envs)

    def decided(self, turn: Turn) -> None:
        """A turn that is answered."""
        if self._actions.kind != "categorical":
            nvec = self._actions.nvec
            self.counts.append(float(np.prod(nvec, dtype=np.float64)) if nvec else 0.0)
            self.logs.append(float(np.log(nvec).sum()) if nvec else 0.0)
            return
        mask = turn.action_mask
        legal = np.full(turn.env_index.size, self._actions.num_actions) if mask is None else mask.sum(axis=1)
        self.counts.append(float(legal.mean()))
        logs = np.log(np.maximum(legal, 1))
        self.logs.append(float(logs.mean()))
        self._ways += np.bincount(turn.env_index, weights=logs, minlength=len(self._ways))

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        self._log_ways.extend(self._ways[turn.ended].tolist())
        self._ways[turn.ended] = 0.0

    def endings(self) -> float | None:
        """Estimated number of endings of one deal; None where no game has ended, or actions are not numbered."""
        if not self._log_ways or self._actions.kind != "categorical":
            return None
        return math.exp(min(log_endings(self._log_ways), MAX_LOG_ENDINGS))


class FieldRanges:
    """Lowest and highest number of each observed field, and how many are large."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float, float, int]] = {}

    def decided(self, turn: Turn) -> None:
        """A turn that is answered."""
        for name, array in turn.obs.items():
            is_bytes = array.dtype == np.uint8  # images, which take eight times the memory in another type
            numbers = array if is_bytes else np.asarray(array, np.float64)
            low, high, large, count = self._seen.get(name, (np.inf, -np.inf, 0.0, 0))
            self._seen[name] = (
                min(low, float(numbers.min()) if numbers.size else np.inf),
                max(high, float(numbers.max()) if numbers.size else -np.inf),
                large + float(np.count_nonzero((numbers if is_bytes else np.abs(numbers)) > np.array(LARGE_INPUT))),
                count + numbers.size,
            )

    def found(self) -> dict[str, FieldRange]:
        """Name of the field -> its range."""
        return {
            name: FieldRange(low, high, large / max(count, 1)) for name, (low, high, large, count) in self._seen.items()
        }


class Successors:
    """Looks for decisions that led to different turns, as long as one seat acts at a time.

    Attributes:
      differ: whether it did.
    """

    def __init__(self, *, num_envs: int) -> None:
        self.differ = False
        self._known: dict[tuple[object, ...], tuple[object, ...]] = {}
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._last: list[tuple[object, ...] | None] = [None] * num_envs

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        if self.differ or len(self._known) >= MAX_REMEMBERED or turn.env_index.size != len(self._last):
            return
        for slot, game in enumerate(turn.env_index.tolist()):
            seen = (int(turn.seat[slot]), *(array[slot].tobytes() for array in turn.obs.values()))
            before = self._last[game]
            if before is not None and self._known.setdefault(before, seen) != seen:
                self.differ = True
            self._last[game] = (*seen, actions[slot].tobytes())

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to. All may see where a game starts."""
        for game in np.flatnonzero(turn.ended):
            self._last[game] = None
