"""Refuses unrolls that no actor of the game can have recorded, before they reach a learner.

A learner indexes with actions and sums numbers: an action beyond the policy's outputs, or a number that is not finite,
would stop every learner on its host.

Shape letters: R rows, T unroll length, A entries of the action mask, H sub-actions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.unroll import Unrolls
from league.envs.protocol import MAX_REWARD, ActionSpec


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
