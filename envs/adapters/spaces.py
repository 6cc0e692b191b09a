"""Converts Gymnasium's spaces to observation fields and an action spec.

A dict keeps its field names (nested ones joined by "."), anything else becomes one field "observation"; "action_mask"
is never a field, nor is text. Floats become float32, wide unsigned numbers signed ones, and discrete observations
one-hot bool. Other arrays keep their dtype.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.envs.adapters.checks.declared_ranges import Bounds
from league.envs.adapters.checks.masks import MASK, Path
from league.envs.adapters.space_codec import ActionCode, ActionPart, ObservationField
from league.envs.protocol import MAX_OBSERVATION_FIELDS, ActionSpec, ArraySpec, EnvError, multi_categorical

MAX_ONE_HOT = 4096
MAX_CHOICES = 16_384
MAX_ACTIONS = 1 << 20
"""Most entries of an action mask, and so outputs of a network: more take gigabytes."""
SIGNED = {"uint16": "int32", "uint32": "int64", "uint64": "float32"}
"""Unsigned numbers and what they become: torch computes with the narrowest of them alone."""
MIN_REACH, MAX_REACH = 0.5, 3.0
"""Bounds of a box around 0 that a fresh policy, which draws from about [-2, 2], explores as they are."""


def observation_fields(space: Any, *, env_id: str, mask: Path | None = (MASK,)) -> tuple[ObservationField, ...]:
    """The fields of an observation space, those without a number left out, such as text.

    Args:
      mask: keys to follow to the mask, which is no field; None where there is none.
    Raises:
      EnvError: an element of the space has no array form of fixed size, two have one name, there are too many, or there
        is only a mask.
    """
    found = _fields(space, path=(), env_id=env_id, mask=mask)
    fields = tuple(field for field in found if math.prod(field.spec.shape))
    if not fields:
        raise EnvError(f"{env_id}: its observations hold nothing besides the action mask; add a number, as Discrete(1)")
    if len(fields) > MAX_OBSERVATION_FIELDS:
        raise EnvError(f"{env_id}: {len(fields)} parts of an observation, at most {MAX_OBSERVATION_FIELDS} are taken")
    names = Counter(field.name for field in fields)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise EnvError(f"{env_id}: two parts of an observation are named {twice[0]!r}; rename one of their keys")
    return fields


def _fields(space: Any, *, path: Path, env_id: str, mask: Path | None) -> list[ObservationField]:
    name = ".".join(str(key) for key in path) or "observation"
    if path and path == mask:
        return []
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = enumerate(space.spaces) if isinstance(space, spaces.Tuple) else space.spaces.items()
        return [field for key, part in parts for field in _fields(part, path=(*path, key), env_id=env_id, mask=mask)]
    if isinstance(space, spaces.Box):
        if space.dtype.kind not in "biuf":
            raise EnvError(f"{env_id}: observation {name!r} has dtype {space.dtype}; give numbers or booleans")
        dtype = "float32" if space.dtype.kind == "f" else SIGNED.get(space.dtype.name, space.dtype.name)
        return [ObservationField(name, path, ArraySpec(tuple(space.shape) or (1,), dtype))]
    if isinstance(space, spaces.MultiBinary):
        return [ObservationField(name, path, ArraySpec(tuple(space.shape), "bool"))]
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        single = isinstance(space, spaces.Discrete)
        counts = [int(space.n)] if single else [int(count) for count in space.nvec.ravel()]
        lowest = [int(space.start)] if single else [int(start) for start in space.start.ravel()]
        total = sum(counts)
        if total > MAX_ONE_HOT:
            raise EnvError(
                f"{env_id}: observation {name!r} has {total} discrete values, at most {MAX_ONE_HOT} are taken"
            )
        offsets = np.cumsum([0, *counts[:-1]]).tolist()
        one_hot = ArraySpec((total,), "bool")
        return [ObservationField(name, path, one_hot, tuple(offsets), tuple(lowest), tuple(counts))]
    if text_in(space):
        return []
    raise EnvError(
        f"{env_id}: observation {name!r} is a {type(space).__name__} space; supported are Box, Discrete, MultiDiscrete,"
        " MultiBinary, and Dict or Tuple of these"
    )


def text_in(space: Any, path: Path = ()) -> list[str]:
    """Names of the parts of an observation that are text, also by a space that a game defines itself."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = enumerate(space.spaces) if isinstance(space, spaces.Tuple) else space.spaces.items()
        return [name for key, part in parts for name in text_in(part, (*path, key))]
    is_text = isinstance(space, spaces.Text) or getattr(space, "dtype", None) == np.dtype(str)
    return [".".join(map(str, path)) or "observation"] if is_text else []


def action_code(space: Any, *, env_id: str) -> ActionCode:
    """The action spec of a space, with the conversion back to the space.

    A Dict or Tuple of choices is sub-actions, and one of boxes a flat box.

    Raises:
      EnvError: the space is neither Discrete, MultiDiscrete, MultiBinary, a bounded Box, nor a Dict or Tuple of these;
        choices stand beside boxes of floats; or there are too many.
    """
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        total = int(space.n) if isinstance(space, spaces.Discrete) else sum(int(count) for count in space.nvec.flat)
        if total > MAX_ACTIONS:
            raise EnvError(
                f"{env_id}: {type(space).__name__} actions have {total:,} choices, at most {MAX_ACTIONS:,} are taken;"
                " choose in several parts, as MultiDiscrete"
            )
    if isinstance(space, spaces.Discrete):
        return ActionCode(ActionSpec(kind="categorical", num_actions=int(space.n)), start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        binary = isinstance(space, spaces.MultiBinary)
        counts = np.full(space.shape, 2) if binary else space.nvec
        starts = np.zeros(space.shape, np.int64) if binary else space.start.astype(np.int64)
        return _choices(counts, starts, dtype=space.dtype.name)
    if isinstance(space, spaces.Box) and space.dtype.kind in "biu":
        total = sum(int(high) - int(low) + 1 for low, high in zip(space.low.flat, space.high.flat, strict=True))
        if total > MAX_CHOICES:
            raise EnvError(f"{env_id}: a Box of integers has {total:,} choices, at most {MAX_CHOICES}")
        low, high = space.low.astype(np.int64), space.high.astype(np.int64)
        return _choices(high - low + 1, low, dtype=space.dtype.name)
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        return _box(space, env_id=env_id)
    if isinstance(space, spaces.Dict | spaces.Tuple) and len(space.spaces):
        return _of_parts(space, env_id=env_id)
    raise EnvError(
        f"{env_id}: {type(space).__name__} actions are not supported; give a Discrete, MultiDiscrete or MultiBinary"
        " space, a Box with finite bounds, or a Dict or Tuple of these"
    )


def _box(space: spaces.Box, *, env_id: str) -> ActionCode:
    """The code of a box of floats.

    Raises:
      EnvError: a bound, or the distance of two, is not finite in float32.
    """
    low, high = (bound.astype(np.float64) for bound in (space.low, space.high))
    reach = np.maximum(np.abs(low), np.abs(high)) + (high - low)
    if not (reach <= np.finfo(np.float32).max).all():
        raise EnvError(f"{env_id}: its Box actions have no finite bounds; wrap it in RescaleAction or give bounds")
    shape, dtype, bounds = tuple(space.shape), space.dtype.name, (space.low, space.high)
    even = low.size and (low == low.flat[0]).all() and (high == high.flat[0]).all()
    if even and low.flat[0] == -high.flat[0] and MIN_REACH <= high.flat[0] <= MAX_REACH:
        spec = ActionSpec(kind="box", shape=shape, low=float(low.flat[0]), high=float(high.flat[0]))
        return ActionCode(spec, dtype=dtype, bounds=bounds)
    # The spec has one pair of bounds: uneven ones, and those too far or too near, are reached from [-1, 1].
    spec = ActionSpec(kind="box", shape=shape, low=-1.0, high=1.0)
    scale, shift = (((high + sign * low) / 2).astype(np.float32) for sign in (-1.0, 1.0))
    return ActionCode(spec, scale=scale, shift=shift, dtype=dtype, bounds=bounds)


def _choices(counts: NDArray[np.integer], starts: NDArray[np.int64], *, dtype: str) -> ActionCode:
    """Sub-actions of so many choices each, in the shape of the space."""
    return ActionCode(multi_categorical(tuple(int(count) for count in counts.ravel())), starts=starts, dtype=dtype)


def _of_parts(space: Any, *, env_id: str) -> ActionCode:
    """The code of a Dict or Tuple, from those of its members.

    Raises:
      EnvError: as `action_code`.
    """
    is_tuple = isinstance(space, spaces.Tuple)
    members = enumerate(space.spaces) if is_tuple else space.spaces.items()
    codes = {key: action_code(member, env_id=env_id) for key, member in members}
    kinds = {code.spec.kind for code in codes.values()}
    if "box" not in kinds:
        parts = tuple(ActionPart(key, code, len(_choices_of(code))) for key, code in codes.items())
        nvec = tuple(count for part in parts for count in _choices_of(part.code))
        return ActionCode(multi_categorical(nvec), parts=parts, is_tuple=is_tuple)
    if len(kinds) > 1:
        raise EnvError(
            f"{env_id}: its actions are choices and boxes of floats together; number some values of each box, as"
            " MultiDiscrete, or make the choices from the signs of a box"
        )
    parts = tuple(ActionPart(key, from_unit(code), math.prod(code.spec.shape)) for key, code in codes.items())
    shape = (sum(part.size for part in parts),)
    return ActionCode(ActionSpec(kind="box", shape=shape, low=-1.0, high=1.0), parts=parts, is_tuple=is_tuple)


def _choices_of(code: ActionCode) -> tuple[int, ...]:
    """Numbers of choices of the sub-actions, one for numbered actions."""
    return code.spec.nvec if code.spec.kind == "multi_categorical" else (code.spec.num_actions,)


def from_unit(code: ActionCode) -> ActionCode:
    """The same box, reached from [-1, 1]."""
    if code.scale is not None or code.parts:
        return code
    low, high = code.spec.low, code.spec.high
    scale = np.full(code.spec.shape, (high - low) / 2, np.float32)
    shift = np.full(code.spec.shape, (high + low) / 2, np.float32)
    return replace(code, spec=replace(code.spec, low=-1.0, high=1.0), scale=scale, shift=shift)


def flat_mask(mask: Any, code: ActionCode) -> NDArray[np.generic]:
    """A mask as one array [A].

    For sub-actions it may be the form that `sample` of their space takes, by place or by key, or all side by side.

    Raises:
      ValueError: the arrays are not one for each sub-action, or differ in their number of choices.
    """
    if code.spec.kind != "multi_categorical":
        return np.asarray(mask)
    parts = [np.asarray(part).ravel() for part in _mask_parts(mask, code)]
    sizes = tuple(part.size for part in parts)
    if sizes != code.spec.nvec and sizes != (1,) * code.spec.num_actions:
        raise ValueError(f"action_mask has sub-actions of {sizes} choices, the actions have {code.spec.nvec}")
    return np.concatenate(parts)


def _mask_parts(mask: Any, code: ActionCode) -> list[Any]:
    """The masks of single sub-actions in their order, or the entries of one array."""
    if isinstance(mask, Mapping):
        absent = [part.key for part in code.parts if part.key not in mask]
        if absent or not code.parts:
            raise ValueError(f"action_mask has the keys {', '.join(map(str, mask))}, and none for {absent or 'these'}")
        mask = [mask[part.key] for part in code.parts]
    if not code.parts or len(mask) != len(code.parts):
        return [mask] if code.spec.kind == "categorical" else list(mask)
    pairs = zip(code.parts, mask, strict=True)
    return [piece for part, own in pairs for piece in _mask_parts(own, part.code)]


def declared_bounds(space: Any, fields: Sequence[ObservationField]) -> dict[str, Bounds]:
    """Name -> bounds of the fields whose Box has some that their dtype does not have by itself."""
    found = {}
    for field in fields:
        part = space
        for key in field.path:
            part = part.spaces[key]
        dtype = np.dtype(field.spec.dtype)
        if not isinstance(part, spaces.Box) or dtype.kind not in "iuf":
            continue
        with np.errstate(over="ignore"):  # bounds beyond float32 are none
            low, high = (bound.reshape(field.spec.shape).astype(dtype) for bound in (part.low, part.high))
        least, most = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if (low > least).any() or (high < most).any():
            found[field.name] = (low, high)
    return found
