"""Finds what belongs to a seat group in observations and actions that are padded to one form for all seats."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ActionSpec, SeatGroup


def corner(shape: Sequence[int]) -> tuple[slice, ...]:
    """The index of the leading corner of this shape."""
    return tuple(slice(size) for size in shape)


def mask_entries(own: ActionSpec, padded: ActionSpec) -> NDArray[np.int64]:
    """int64, the entries of the padded action mask that belong to own actions, in the order of their own mask."""
    if padded.kind == "box":
        return np.zeros(0, np.int64)
    if padded.kind == "categorical":
        return np.arange(own.num_actions)
    sizes = own.nvec if own.kind == "multi_categorical" else (own.num_actions,)
    places = padded.sub_action_masks
    return np.concatenate([place.start + np.arange(size) for place, size in zip(places, sizes, strict=False)])


def box_entries(own: ActionSpec, padded: ActionSpec) -> NDArray[np.int64]:
    """int64, the numbers of a flattened padded box that belong to an own box, in the order of its own numbers."""
    every = np.arange(math.prod(padded.shape)).reshape(padded.shape)
    entries: NDArray[np.int64] = every[corner(own.shape)].reshape(-1)
    return entries


def group_mask(group: SeatGroup, padded: ActionSpec) -> NDArray[np.bool_]:
    """bool [A], the entries of the padded action mask that are actions of the group."""
    mask = np.zeros(padded.num_actions, np.bool_)
    mask[mask_entries(group.actions, padded)] = True
    return mask
