"""Deep copies of external envs that keep their state.

`EzPickle` makes deepcopy (as pickling) call the constructor again: the "copy" of a game in progress is a fresh game.
The state of such objects is therefore copied by hand, before the wrappers around them.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import pettingzoo
from gymnasium.utils import EzPickle

ENVS = (EzPickle, gymnasium.Env, pettingzoo.AECEnv, pettingzoo.ParallelEnv)


def copy_game(env: Any) -> Any:
    """An independent env in the same state as `env`.

    Raises:
      TypeError: it holds something that cannot be copied, such as an open window.
    """
    copied: dict[int, Any] = {}  # deepcopy's memo: objects in it are not copied again
    for layer in _layers(env, set()):
        if isinstance(layer, EzPickle):
            shell = object.__new__(type(layer))
            copied[id(layer)] = shell
            vars(shell).update({name: copy.deepcopy(value, copied) for name, value in vars(layer).items()})
    return copy.deepcopy(env, copied)


def _layers(env: Any, seen: set[int]) -> list[Any]:
    """The envs that `env` holds in its attributes, at any depth, and itself; what is held comes first."""
    if id(env) in seen:
        return []
    seen.add(id(env))
    held = [value for value in vars(env).values() if isinstance(value, ENVS)]
    return [layer for value in held for layer in _layers(value, seen)] + [env]
