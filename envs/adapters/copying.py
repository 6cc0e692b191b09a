"""Deep copies of external envs that keep their state.

`EzPickle` makes deepcopy (as pickling) call the constructor again: the "copy" of a game in progress is a fresh game.
The state of such objects is therefore copied by hand, before the wrappers around them.

Spaces describe a game and are no part of its state: copies share them, for they are most of what a small game holds.

An object with a finaliser releases something that Python does not know, such as an emulator's memory. A plain copy of
it holds the same thing, and would release it again: that ends the process. Such games are not copied.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
from gymnasium import spaces
from gymnasium.utils import EzPickle

ENVS = (EzPickle, gymnasium.Env, pettingzoo.AECEnv, pettingzoo.ParallelEnv)


def copy_game(env: Any) -> Any:
    """An independent env in the same state as `env`.

    Raises:
      TypeError: it holds something that cannot be copied, such as an open window or an emulator.
    """
    copied: dict[int, Any] = {id(space): space for space in _checked_spaces(env)}  # deepcopy's memo: not copied again
    for layer in _layers(env, set()):
        if isinstance(layer, EzPickle):
            shell = object.__new__(type(layer))
            copied[id(layer)] = shell
            vars(shell).update({name: copy.deepcopy(value, copied) for name, value in vars(layer).items()})
    return copy.deepcopy(env, copied)


OWN_COPIES = ("__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__")
"""Methods by which a class says how it is copied."""

WITHOUT_PARTS = frozenset({bool, int, float, str, bytes, type(None), np.ndarray})
"""Most of what an env holds; left out at once, since a search copies games by the thousand."""


PLAIN_SPACES = frozenset(
    {spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Dict, spaces.Tuple}
)
"""Kinds of spaces of which all parts are known."""


def _checked_spaces(env: Any) -> list[gymnasium.Space[Any]]:
    """The spaces below `env` that no draw was made from.

    Raises:
      TypeError: an object below it has a finaliser and does not say how it is copied.
    """
    seen: set[int] = {id(env)}
    waiting: list[object] = [env]
    undrawn: list[gymnasium.Space[Any]] = []
    while waiting:
        held = waiting.pop()
        if isinstance(held, gymnasium.Space) and _is_undrawn(held):
            undrawn.append(held)
            continue
        if _releases(type(held)):  # type: ignore[arg-type]  # a class is hashable
            raise TypeError(f"{type(held).__name__} releases what it holds, and a copy would release it again")
        for part in _parts(held):
            if type(part) not in WITHOUT_PARTS and id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
    return undrawn


def _is_undrawn(space: gymnasium.Space[Any]) -> bool:
    """True for a space of a plain kind that has no random generator yet, nor has any part of it."""
    if type(space) not in PLAIN_SPACES or space._np_random is not None:
        return False
    parts = getattr(space, "spaces", ())
    return all(_is_undrawn(part) for part in (parts.values() if isinstance(parts, dict) else parts))


def _parts(held: object) -> Iterable[Any]:
    """The objects that a deep copy of one copies with it, as far as Python shows them."""
    if isinstance(held, dict):
        return held.values()
    if isinstance(held, list | tuple | set | frozenset):
        return held
    if isinstance(held, type) or _copies_itself(type(held)):  # type: ignore[arg-type]  # as above
        return ()
    return getattr(held, "__dict__", {}).values()


@functools.cache
def _releases(kind: type) -> bool:
    """True for a class with a finaliser that does not say how it is copied."""
    return hasattr(kind, "__del__") and not _copies_itself(kind)


@functools.cache
def _copies_itself(kind: type) -> bool:
    """True for a class that says how it is copied; what `EzPickle` says makes a fresh game, which is no copy."""
    unsaid = {name: (getattr(object, name, None), getattr(EzPickle, name, None)) for name in OWN_COPIES}
    return any(getattr(kind, name, None) not in methods for name, methods in unsaid.items())


def _layers(env: Any, seen: set[int]) -> list[Any]:
    """The envs that `env` holds in its attributes, at any depth, and itself; what is held comes first."""
    if id(env) in seen:
        return []
    seen.add(id(env))
    held = [value for value in vars(env).values() if isinstance(value, ENVS)]
    return [layer for value in held for layer in _layers(value, seen)] + [env]
