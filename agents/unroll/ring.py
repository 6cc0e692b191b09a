"""A preallocated ring buffer of unrolls on their way to a learner.

Shape letter: C capacity in rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.unroll.unroll import Unrolls, UnrollSpec, learnt_dtype
from league.envs.protocol import MAX_REWARD, ActionSpec, EnvSpec

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


def check_unrolls(unrolls: Unrolls, actions: ActionSpec) -> None:
    """Check the values of unrolls with valid shapes and dtypes.

    Args:
      unrolls: R rows.
      actions: of the game.
    Raises:
      ValueError: a number is not finite; an action is out of range or illegal under its mask; a reward is beyond
        `MAX_REWARD`, a discount outside [0, 1] or a version negative. The message names the field and the value.
    """
    for name, array in unrolls.arrays().items():
        if array.dtype.kind == "f" and not _all_finite(array):
            raise ValueError(f"field {name} holds a number that is not finite")
    _check_range("rewards", unrolls.rewards, -MAX_REWARD, MAX_REWARD)
    _check_range("discounts", unrolls.discounts, 0.0, 1.0)
    _check_range("versions", unrolls.versions, 0, np.iinfo(np.int32).max)
    if actions.kind != "box":
        _check_actions(unrolls, actions)


def _check_actions(unrolls: Unrolls, actions: ActionSpec) -> None:
    """Check the range and the legality of integer actions."""
    if actions.kind == "categorical":
        _check_range("actions", unrolls.actions, 0, actions.num_actions - 1)
        entries = unrolls.actions.astype(np.int64)[..., None]
    else:
        for number, size in enumerate(actions.nvec):
            _check_range(f"actions (sub-action {number})", unrolls.actions[..., number], 0, size - 1)
        entries = _mask_entries(unrolls.actions.astype(np.int64), actions)
    if unrolls.action_mask is None:
        return
    mask = unrolls.action_mask[:, : entries.shape[1]]
    illegal = ~np.take_along_axis(mask, entries, axis=-1) & unrolls.valid[..., None]
    if actions.kind == "multi_categorical":
        illegal &= unrolls.actions != 0  # 0 is the answer of a sub-action without a legal choice
    elif illegal.any():
        illegal &= mask.any(-1, keepdims=True)
    if illegal.any():
        row, step, _ = np.argwhere(illegal)[0]
        raise ValueError(f"action {unrolls.actions[row, step]} in row {row}, step {step} is illegal under its mask")


def _mask_entries(chosen: NDArray[np.int64], actions: ActionSpec) -> NDArray[np.int64]:
    """int64 [R, T, H], the index in the mask [A] of each sub-action of `chosen`."""
    rows = [0 if place.given < 0 else chosen[..., place.given] for place in actions.sub_action_masks]
    return np.stack(
        [
            place.start + row * place.size + chosen[..., number]
            for number, (place, row) in enumerate(zip(actions.sub_action_masks, rows, strict=True))
        ],
        axis=-1,
    )


def _check_range(name: str, array: NDArray[np.generic], least: float, most: float) -> None:
    """Raise ValueError if a number is outside [least, most]."""
    if array.size and not (least <= array.min() and array.max() <= most):
        found = array.max() if array.max() > most else array.min()
        raise ValueError(f"field {name} holds {found}, which is not between {least:g} and {most:g}")


def _all_finite(array: NDArray[np.generic]) -> bool:
    with np.errstate(all="ignore"):
        if np.isfinite(
            array.sum()
        ):  # several times faster than a test of every number, which follows if the sum overflows
            return True
    return bool(np.isfinite(array).all())
