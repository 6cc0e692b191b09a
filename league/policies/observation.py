"""Turns what an environment shows one seat into the batch of one that a network takes, refusing what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.protocol import ArraySpec, EnvSpec
from league.errors import LeagueError

MASK_FIELD = "action_mask"

Observation = Any
"""An array, or a mapping of arrays by field name (numpy, lists and scalars alike)."""


class ObservationMismatch(LeagueError, ValueError):  # noqa: N818
    """An observation or mask is not of the shape, dtype or fields that the policy was trained on."""


def batch_of_one(observation: Observation, spec: EnvSpec) -> dict[str, NDArray[np.generic]]:
    """Fields [1, ...] in the dtypes of the spec.

    Args:
      observation: as the env shows it; or a mapping by field name (an action mask in it is left out), or a bare array
        where the game has one field.
      spec: of the game that the policy was trained on.
    Raises:
      ObservationMismatch: a field is missing or unknown, or does not have the shape or the values of its spec.
    """
    if spec.user_format is None:
        return _fields(observation, spec)
    try:
        shown = spec.user_format.read(observation)
    except ValueError as error:
        try:
            return _fields(observation, spec)
        except ObservationMismatch as mismatch:
            raise ObservationMismatch(f"{mismatch} As the environment shows it, it is none either: {error}.") from None
    return _fields(shown, spec)


def _fields(observation: Observation, spec: EnvSpec) -> dict[str, NDArray[np.generic]]:
    """Fields [1, ...] of an observation that holds them by name, or as a bare array."""
    wanted = spec.observations
    if isinstance(observation, Mapping):
        given = {str(name): value for name, value in observation.items() if name != MASK_FIELD}
        if set(given) != set(wanted) and len(given) == len(wanted) == 1:
            given = dict(zip(wanted, given.values(), strict=True))
    elif len(wanted) == 1:
        given = {next(iter(wanted)): observation}
    else:
        raise ObservationMismatch(
            f"the observation is one array, but a seat of {spec.env_id} sees the fields {', '.join(wanted)}:"
            " give a dict of them."
        )
    if set(given) != set(wanted):
        raise ObservationMismatch(
            f"the observation has the fields {', '.join(given) or 'none'}, the policy was trained on"
            f" {', '.join(wanted)} of {spec.env_id}."
        )
    return {name: _field(name, given[name], field, spec.env_id) for name, field in wanted.items()}


def mask_of_one(mask: Observation | None, observation: Observation, spec: EnvSpec) -> NDArray[np.bool_] | None:
    """bool [1, A], or None where every action is legal.

    Args:
      mask: [A], true or not 0 where legal, or one array for each part of an action; None takes the field "action_mask"
        of a mapping, and without one everything is legal.
    Raises:
      ObservationMismatch: of another length, or without a legal action.
    """
    if mask is None and isinstance(observation, Mapping):
        mask = observation.get(MASK_FIELD)
    if mask is None or spec.actions.kind == "box":
        return None
    legal = _flat(mask).astype(np.bool_)
    if legal.shape != (spec.actions.num_actions,):
        raise ObservationMismatch(
            f"the action mask has shape {legal.shape}, {spec.env_id} has {spec.actions.num_actions} actions: shape"
            f" ({spec.actions.num_actions},) is needed."
        )
    if not legal.any():
        raise ObservationMismatch("the action mask allows no action: the game of this seat is over.")
    return legal[None]


def _flat(mask: Observation) -> NDArray[np.generic]:
    """A mask, or the masks of several parts, as one array."""
    if isinstance(mask, tuple | list) and any(np.ndim(part) for part in mask):
        return np.concatenate([np.asarray(part) for part in mask])
    return np.asarray(mask)


def _field(name: str, value: Observation, field: ArraySpec, env_id: str) -> NDArray[np.generic]:
    given = np.asarray(value)
    if given.shape != tuple(field.shape):
        raise ObservationMismatch(
            f"the observation {name!r} has shape {given.shape}, the policy was trained on shape {tuple(field.shape)}"
            f" of {env_id}."
        )
    if given.dtype.kind not in "biuf":
        raise ObservationMismatch(f"the observation {name!r} is {given.dtype}, numbers ({field.dtype}) are needed.")
    wanted = np.dtype(field.dtype)
    cast = np.ascontiguousarray(given, wanted)
    if wanted.kind in "biu" and not np.array_equal(cast, given):
        raise ObservationMismatch(
            f"the observation {name!r} holds values that {field.dtype} cannot, such as"
            f" {given[cast != given].reshape(-1)[0]}: it is not what {env_id} shows."
        )
    return cast[None]


def within_bounds(spec: EnvSpec, actions: NDArray[np.generic]) -> NDArray[np.generic]:
    """Actions as the env takes them: those of a box clipped, whatever density the policy gave to what lies outside."""
    if spec.actions.kind != "box":
        return actions
    clipped: NDArray[np.generic] = np.clip(actions, spec.actions.low, spec.actions.high)
    return clipped
