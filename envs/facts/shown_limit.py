"""Tells from random play whether a lone seat sees that a time limit has been reached, as on a clock.

Such an observation comes only after the last decision. A value expected from there is corrected by nothing.

Shape letters: K rows, D numbers of the fields that are no pictures or tables.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec, Turn

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
