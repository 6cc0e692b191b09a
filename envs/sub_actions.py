"""Sub-actions: computes the legal choices of each, given those before it, and chooses them one by one.

Shape letters: K slots, H sub-actions, n choices of one sub-action, A entries of the action mask.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ActionSpec
from league.envs.sampling import uniform_legal

Pick = Callable[[NDArray[np.bool_]], NDArray[np.int64]]
"""Legal choices bool [K, n] of a sub-action (a row without any is unused) -> one choice per row, int64 [K]."""


def legal_choices(
    actions: ActionSpec, sub_action: int, *, mask: NDArray[np.bool_] | None, chosen: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """bool [K, n], the legal choices of a sub-action.

    Args:
      mask: bool [K, A]; None if everything is legal.
      chosen: int64 [K, H]; only the sub-actions before this one are read.
    """
    size = actions.nvec[sub_action]
    if mask is None:
        return np.ones((len(chosen), size), np.bool_)
    place = actions.sub_action_masks[sub_action]
    table = mask[:, place.start : place.start + place.rows * place.size].reshape(-1, place.rows, place.size)
    row = np.zeros(len(chosen), np.int64) if place.given < 0 else chosen[:, place.given]
    legal: NDArray[np.bool_] = table[np.arange(len(chosen)), row]
    return legal


def choose_sub_actions(
    actions: ActionSpec, num_slots: int, *, mask: NDArray[np.bool_] | None, pick: Pick
) -> NDArray[np.int64]:
    """int64 [K, H], each sub-action picked among its choices that are legal after those before it; 0 if none is."""
    chosen = np.zeros((num_slots, len(actions.nvec)), np.int64)
    for sub_action in range(len(actions.nvec)):
        legal = legal_choices(actions, sub_action, mask=mask, chosen=chosen)
        chosen[:, sub_action] = np.where(legal.any(axis=1), pick(legal), 0)
    return chosen


def draw_sub_actions(
    actions: ActionSpec, num_slots: int, *, mask: NDArray[np.bool_] | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """int64 [K, H], each sub-action drawn uniformly among its legal choices."""
    return choose_sub_actions(actions, num_slots, mask=mask, pick=lambda legal: uniform_legal(legal, rng))


def first_sub_actions(actions: ActionSpec, num_slots: int, *, mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """int64 [K, H], the first legal choice of each sub-action."""
    return choose_sub_actions(actions, num_slots, mask=mask, pick=lambda legal: legal.argmax(axis=1))


def sub_actions_are_legal(
    actions: ActionSpec, chosen: NDArray[np.int64], *, mask: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """bool [K], True if int64 [K, H] answers are in range and each sub-action is legal after those before it."""
    sizes = np.array(actions.nvec, np.int64)
    in_range = (chosen >= 0) & (chosen < sizes)
    fine: NDArray[np.bool_] = np.logical_and.reduce(in_range, axis=1)
    held = np.clip(chosen, 0, sizes - 1)
    for sub_action in range(len(actions.nvec)):
        legal = legal_choices(actions, sub_action, mask=mask, chosen=held)
        unused = ~legal.any(axis=1) & (held[:, sub_action] == 0)
        allowed: NDArray[np.bool_] = legal[np.arange(len(held)), held[:, sub_action]]
        fine = np.logical_and(fine, allowed | unused)
    return fine


def illegal_answer(actions: ActionSpec, *, mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """An illegal answer of one slot, int64 [H], or [] for a numbered action: a masked one if possible, else too high.

    Args:
      mask: bool [1, A].
    """
    if actions.kind == "categorical":
        return np.array(actions.num_actions if mask is None or mask.all() else mask[0].argmin(), np.int64)
    chosen = first_sub_actions(actions, 1, mask=mask)
    for sub_action in range(len(actions.nvec)):
        legal = legal_choices(actions, sub_action, mask=mask, chosen=chosen)[0]
        if legal.any() and not legal.all():
            chosen[0, sub_action] = int(legal.argmin())
            break
    else:
        chosen[0, 0] = actions.nvec[0]
    illegal: NDArray[np.int64] = chosen[0]
    return illegal
