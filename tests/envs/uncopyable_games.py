"""Games that hold what cannot be copied, each in a way of its own: an engine's handle may raise anything."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import BatchedEnv, Turn


class Handle:
    """A handle of an engine whose copy raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise self._error


class Holding(gymnasium.Env[Any, Any]):
    """Five steps; holds `what`."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, what: Any) -> None:
        self._what = what
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return np.full(1, self._steps / 5, np.float32), 1.0, self._steps == 5, False, {}


class ForkRaises:
    """A `BatchedEnv` that offers copies and then raises."""

    def __init__(self, games: TicTacToe) -> None:
        self.spec, self.num_envs = games.spec, games.num_envs
        self.reset, self.step, self.close = games.reset, games.step, games.close

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        raise RuntimeError("the engine has one board")


def _numbers() -> Iterator[int]:
    yield 1


HELD: dict[str, Callable[[], Any]] = {
    "pointer": lambda: ctypes.pointer(ctypes.c_int(3)),
    "lock": threading.Lock,
    "generator": _numbers,
    "file": lambda: Path(__file__).open(),  # noqa: SIM115
    "runtime_error": lambda: Handle(RuntimeError("the engine is busy")),
    "value_error": lambda: Handle(ValueError("ctypes objects containing pointers cannot be pickled")),
    "os_error": lambda: Handle(OSError("no such device")),
    "not_implemented": lambda: Handle(NotImplementedError()),
}


def holding(what: str) -> Holding:
    return Holding(HELD[what]())


def fork_raises(num_envs: int) -> ForkRaises:
    return ForkRaises(TicTacToe(num_envs=num_envs))
