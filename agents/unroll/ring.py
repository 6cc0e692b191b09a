"""A preallocated ring buffer of unrolls on their way to a learner.

Shape letter: C capacity in rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.unroll.unroll import Unrolls, UnrollSpec, learnt_dtype
from league.agents.unroll.unroll_check import check_unrolls
from league.envs.protocol import EnvSpec

MAX_REASON = 500
"""Most characters of a reason for refusing rows: their own field names may be long."""


class UnrollRing:
    """C rows, batch-major, allocated once.

    Args:
      spec: of the unrolls.
      capacity: C.
      pinned: page-locked memory, from which a GPU copies while it computes. Allocated once because pinning is slow.
    """

    def __init__(self, spec: UnrollSpec, *, capacity: int, pinned: bool) -> None:
        self.capacity = capacity
        self._game = spec.game
        # Actions are stored in the loss's dtype, so that the conversion happens here and not in the learner's thread.
        self._rows = spec.allocate(
            capacity, zeros=_pinned_zeros if pinned else np.zeros, action_dtype=learnt_dtype(spec.action_dtype)
        )

    def check(self, unrolls: Unrolls) -> None:
        """Check rows against those of the ring, and their values against the game, before any is written.

        Raises:
          ValueError: a field is missing, left over, of another shape or dtype, or holds impossible values.
        """
        require_rows(unrolls, self._rows, self._game)

    def write(self, unrolls: Unrolls, *, at: int) -> None:
        """Copy rows to positions from `at` modulo C, wrapping around the end."""
        start, done, theirs = at % self.capacity, 0, unrolls.arrays()
        while done < unrolls.num_rows:
            count = min(unrolls.num_rows - done, self.capacity - start)
            for name, array in self._rows.arrays().items():
                np.copyto(array[start : start + count], theirs[name][done : done + count], casting="same_kind")
            start, done = 0, done + count

    def read(self, *, at: int, count: int) -> Unrolls:
        """Views of `count` rows from position `at` modulo C; they must not wrap around the end."""
        start = at % self.capacity
        assert start + count <= self.capacity, "blocks divide the capacity"
        return self._rows.rows(start, start + count)


def require_rows(unrolls: Unrolls, example: Unrolls, game: EnvSpec) -> None:
    """Check rows against example rows, and their values against the game.

    Raises:
      ValueError: as of `UnrollRing.check`.
    """
    mine, theirs = example.arrays(), unrolls.arrays()
    if mine.keys() != theirs.keys():
        raise ValueError(f"unrolls with the fields {sorted(theirs)} do not fit a ring of {sorted(mine)}"[:MAX_REASON])
    for name, array in theirs.items():
        if array.shape[1:] != mine[name].shape[1:] or array.shape[:1] != (unrolls.num_rows,):
            raise ValueError(f"field {name} has rows of shape {array.shape[1:]}, the ring {mine[name].shape[1:]}")
        # No cast between kinds or to fewer bits: it could make infinities, or values of another game look valid.
        whole_numbers = name == "actions" and mine[name].dtype.kind == "i" and array.dtype.kind in "iu"
        if array.dtype != mine[name].dtype and not whole_numbers:
            raise ValueError(f"field {name} is {array.dtype}, the game's is {mine[name].dtype}")
    check_unrolls(unrolls, game.actions)


def _pinned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    torch_dtype = torch.from_numpy(np.zeros(0, dtype)).dtype
    view: NDArray[Any] = torch.zeros(shape, dtype=torch_dtype, pin_memory=True).numpy()
    return view
