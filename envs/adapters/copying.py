"""Deep copies of external envs that keep their state.

`EzPickle` makes deepcopy (as pickling) call the constructor again: the "copy" of a game in progress is a fresh game.
The state of such objects is therefore copied by hand, before the wrappers around them.
"""

from __future__ import annotations

import copy
from typing import Any

from gymnasium.utils import EzPickle

INNER = ("env", "aec_env", "par_env")  # where wrappers of Gymnasium and PettingZoo keep what they wrap


def copy_game(env: Any) -> Any:
    """An independent env in the same state as `env`.

    Raises:
      TypeError: it holds something that cannot be copied, such as an open window.
    """
    layers = [env]
    while (inner := next((vars(layers[-1])[name] for name in INNER if name in vars(layers[-1])), None)) is not None:
        layers.append(inner)
    copied: dict[int, Any] = {}  # deepcopy's memo: objects in it are not copied again
    for layer in reversed(layers):
        if isinstance(layer, EzPickle):
            shell = object.__new__(type(layer))
            copied[id(layer)] = shell
            vars(shell).update({name: copy.deepcopy(value, copied) for name, value in vars(layer).items()})
    return copy.deepcopy(env, copied)
