"""Turns what an environment shows one seat into the batch of one that a network takes, refusing what does not fit."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import MASK_ENDING, SEAT_GROUP, ArraySpec, EnvSpec
from league.errors import LeagueError

MASK_FIELD = "action_mask"

Observation = Any
"""An array, or a mapping of arrays by field name (numpy, lists and scalars alike)."""


class ObservationMismatch(LeagueError, ValueError):  # noqa: N818
    """An observation or mask is not of the shape, dtype or fields that the policy was trained on."""


def seat_number(observation: Observation, spec: EnvSpec, seat: str | int | None) -> int | None:
    """The number of the seat that observes something; None where it makes no difference.

    Args:
      seat: its name or number; None finds it by the observation.
    Raises:
      ObservationMismatch: there is no such seat, or the observation does not tell it.
    """
    names = spec.seat_names or tuple(str(number) for number in range(spec.num_seats))
    if isinstance(seat, str) and seat in names:
        return names.index(seat)
    if isinstance(seat, int) and 0 <= seat < spec.num_seats:
        return seat
    if seat is not None:
        raise ObservationMismatch(f"{spec.env_id} has no seat {seat!r}; its seats are {', '.join(names)}.")
    if spec.user_format is None or (isinstance(observation, Mapping) and SEAT_GROUP in observation):
        return None
    try:
        return spec.user_format.seat_of(observation)
    except ValueError as error:
        raise ObservationMismatch(f"{error}: say which of {', '.join(names)} it is, by seat=NAME.") from None


def batch_of_one(observation: Observation, spec: EnvSpec, *, seat: int | None = None) -> dict[str, NDArray[np.generic]]:
    """Fields [1, ...] in the dtypes of the spec.

    Args:
      observation: as the env shows it; or a mapping by field name (an action mask in it is left out), or a bare array
        where the game has one field.
      spec: of the game that the policy was trained on.
      seat: that observes it, see `seat_number`.
    Raises:
      ObservationMismatch: a field is missing or unknown, does not have the shape or the values of its spec, or holds a
        number that is not finite.
    """
    if spec.user_format is None:
        return _fields(observation, spec)
    try:
        shown = spec.user_format.read(observation, seat=seat)
    except ValueError as error:
        try:
            return _fields(observation, spec)
        except ObservationMismatch as mismatch:
            raise ObservationMismatch(f"{mismatch} As the environment shows it, it is none either: {error}.") from None
    return _fields(shown, spec)


def _fields(observation: Observation, spec: EnvSpec) -> dict[str, NDArray[np.generic]]:
    """Fields [1, ...] of an observation that holds them by name, or as a bare array."""
    wanted = {name: field for name, field in spec.observations.items() if name not in spec.value_fields}
    if isinstance(observation, Mapping):
        left_out = (MASK_FIELD, *spec.value_fields)
        given = {str(name): value for name, value in observation.items() if name not in left_out}
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
    fields = {name: _field(name, given[name], field, spec.env_id) for name, field in wanted.items()}
    for name, field in fields.items():
        _require_finite(name, field, fields.get(name + MASK_ENDING), given[name], spec.env_id)
    return fields


def mask_of_one(
    mask: Observation | None, observation: Observation, spec: EnvSpec, *, seat: int | None = None
) -> NDArray[np.bool_] | None:
    """bool [1, A], or None where every action is legal.

    Args:
      mask: [A], true or not 0 where legal, or one array for each part of an action; None takes the field "action_mask"
        of a mapping, and without one everything is legal that the seat has.
      seat: see `seat_number`.
    Raises:
      ObservationMismatch: of another length, or without a legal action.
    """
    if mask is None and isinstance(observation, Mapping):
        mask = observation.get(MASK_FIELD)
    if spec.actions.kind == "box":
        return None
    if spec.user_format is not None:
        with contextlib.suppress(ValueError):  # a mask that is not the seat's own may be one of the spec
            mask = spec.user_format.read_mask(mask, seat=seat)
    if mask is None:
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
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is refused below
        cast = np.ascontiguousarray(given, wanted)
    if wanted.kind in "biu" and not np.array_equal(cast, given):
        raise ObservationMismatch(
            f"the observation {name!r} holds values that {field.dtype} cannot, such as"
            f" {given[cast != given].reshape(-1)[0]}: it is not what {env_id} shows."
        )
    return cast[None]


def _require_finite(
    name: str, field: NDArray[np.generic], present: NDArray[np.generic] | None, value: Observation, env_id: str
) -> None:
    """Refuse a field [1, ...] with a number that is not finite, but for absent members of a set.

    present: bool [1, E], of the members of a set. value: the field as it was given.
    """
    bad = ~np.isfinite(field[0])
    if present is not None and present.shape[1:] == bad.shape[:1]:
        bad[~present[0].astype(np.bool_)] = False
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ObservationMismatch(
            f"the observation {name!r} is {np.asarray(value)[place]} at {list(place)}, which is no finite number of"
            f" {field.dtype}: it is not what {env_id} shows."
        )


def within_bounds(spec: EnvSpec, actions: NDArray[np.generic]) -> NDArray[np.generic]:
    """Actions as the env takes them: those of a box clipped, whatever density the policy gave to what lies outside."""
    if spec.actions.kind != "box":
        return actions
    clipped: NDArray[np.generic] = np.clip(actions, spec.actions.low, spec.actions.high)
    return clipped
