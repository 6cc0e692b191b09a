"""Preallocated rows for unrolls on their way to a learner, written and read in circles.

Shape letters: C capacity in rows, T unroll length, H parts of an action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agents.unroll.unroll import Unrolls
from agents.unroll.unroll_check import check_unrolls
from envs.protocol import EnvSpec

PLAIN = ("resets", "actions", "log_probs", "rewards", "discounts", "valid", "versions", "core")

MAX_REASON = 500
"""Characters of a reason for refusing rows: what they say of themselves may be long."""


class UnrollRing:
    """C rows, batch-major, allocated once.

    Args:
      spec: the game.
      capacity: C.
      unroll_length: T.
      core_size: floats of core state per row; num_sub_actions: H where log-probabilities of parts come along, else 0.
      pinned: page-locked memory, from which a GPU copies while it computes. Allocated once because pinning is slow.
    """

    def __init__(
        self, spec: EnvSpec, *, capacity: int, unroll_length: int, core_size: int, num_sub_actions: int, pinned: bool
    ) -> None:
        self.capacity = capacity
        self._actions = spec.actions
        shape = (capacity, unroll_length)
        longer = (capacity, unroll_length + 1)
        # Actions are kept as the loss wants them, so that the conversion happens here and not in the learner's thread.
        action_dtype = np.float32 if spec.actions.kind == "box" else np.int64
        allocate = _allocator(pinned=pinned)
        self._rows = Unrolls(
            obs={
                name: allocate((*longer, *array.shape), np.dtype(array.dtype))
                for name, array in spec.observations.items()
            },
            action_mask=allocate((*longer, spec.actions.num_actions), np.bool_) if spec.has_mask else None,
            resets=allocate(longer, np.bool_),
            actions=allocate((*shape, *spec.actions.shape), action_dtype),
            log_probs=allocate(shape, np.float32),
            rewards=allocate(shape, np.float32),
            discounts=allocate(shape, np.float32),
            valid=allocate(shape, np.bool_),
            versions=allocate(shape, np.int32),
            core=allocate((capacity, core_size), np.float32),
            sub_action_log_probs=allocate((*shape, num_sub_actions), np.float32) if num_sub_actions else None,
        )

    def check(self, unrolls: Unrolls) -> None:
        """Compare rows with those of the ring, and their values with the game, before any is written.

        Raises:
          ValueError: a field is missing, left over, of another shape or dtype, or holds what cannot have been recorded.
        """
        mine, theirs = _fields(self._rows), _fields(unrolls)
        if mine.keys() != theirs.keys():
            raise ValueError(
                f"unrolls with the fields {sorted(theirs)} do not fit a ring of {sorted(mine)}"[:MAX_REASON]
            )
        for name, array in theirs.items():
            if array.shape[1:] != mine[name].shape[1:] or array.shape[:1] != (unrolls.num_rows,):
                raise ValueError(f"field {name} has rows of shape {array.shape[1:]}, the ring {mine[name].shape[1:]}")
            # No cast between kinds or to fewer bits: it would make infinities, and other games' numbers look like ours.
            whole_numbers = name == "actions" and mine[name].dtype.kind == "i" and array.dtype.kind in "iu"
            if array.dtype != mine[name].dtype and not whole_numbers:
                raise ValueError(f"field {name} is {array.dtype}, the game's is {mine[name].dtype}")
        check_unrolls(unrolls, self._actions)

    def write(self, unrolls: Unrolls, *, at: int) -> None:
        """Copy rows to position `at` modulo C and on, around the end if need be."""
        start, done = at % self.capacity, 0
        while done < unrolls.num_rows:
            count = min(unrolls.num_rows - done, self.capacity - start)
            theirs = _fields(unrolls)
            for name, array in _fields(self._rows).items():
                np.copyto(array[start : start + count], theirs[name][done : done + count], casting="same_kind")
            start, done = 0, done + count

    def read(self, *, at: int, count: int) -> Unrolls:
        """Views of `count` rows from position `at` modulo C; they must not lie around the end."""
        start = at % self.capacity
        assert start + count <= self.capacity, "blocks divide the capacity"
        return self._rows.rows(start, start + count)


def _fields(unrolls: Unrolls) -> dict[str, NDArray[np.generic]]:
    fields = {f"obs.{name}": array for name, array in unrolls.obs.items()}
    optional = {"action_mask": unrolls.action_mask, "sub_action_log_probs": unrolls.sub_action_log_probs}
    fields.update({name: array for name, array in optional.items() if array is not None})
    fields.update({name: getattr(unrolls, name) for name in PLAIN})
    return fields


def _allocator(*, pinned: bool) -> Callable[[tuple[int, ...], Any], NDArray[Any]]:
    def allocate(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        if not pinned:
            return np.zeros(shape, dtype)
        torch_dtype = torch.from_numpy(np.zeros(0, dtype)).dtype
        view: NDArray[Any] = torch.zeros(shape, dtype=torch_dtype, pin_memory=True).numpy()
        return view

    return allocate
