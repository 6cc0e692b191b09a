"""Games that count how many of them are open, one factory for each kind of env that users bring."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.envs.games.kuhn import KuhnPoker
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import BatchedEnv, Turn

OPEN: Counter[str] = Counter()


class CountedGames:
    """A `BatchedEnv` that counts itself, and its copies too."""

    def __init__(self, games: BatchedEnv) -> None:
        OPEN["made"] += 1
        OPEN["open"] += 1
        self.spec, self.num_envs = games.spec, games.num_envs
        self._games = games
        self._is_open = True

    def reset(self, seed: int) -> Turn:
        return self._games.reset(seed)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        return self._games.step(actions)

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[CountedGames, Turn]:
        assert isinstance(self._games, TicTacToe | KuhnPoker)
        forked, turn = self._games.fork(env_indices)
        return CountedGames(forked), turn

    def close(self) -> None:
        OPEN["open"] -= self._is_open
        self._is_open = False


class CountedLine(gymnasium.Env[Any, Any]):
    """One seat walks to the right end of a line; counts itself and its copies."""

    observation_space = spaces.Discrete(4)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._place = 0
        self._counted()

    def _counted(self) -> None:
        OPEN["made"] += 1
        OPEN["open"] += 1
        self._is_open = True

    def __deepcopy__(self, memo: dict[int, Any]) -> CountedLine:
        other = copy.copy(self)
        other._counted()
        return other

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        self._place = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._place = max(self._place + (1 if action else -1), 0)
        over = self._place == 3
        return self._place, float(over), over, False, {}

    def close(self) -> None:
        OPEN["open"] -= self._is_open
        self._is_open = False


def boards(num_envs: int) -> CountedGames:
    return CountedGames(TicTacToe(num_envs=num_envs))


def cards(num_envs: int) -> CountedGames:
    return CountedGames(KuhnPoker(num_envs=num_envs))


def line() -> CountedLine:
    return CountedLine()


def endless_line() -> CountedLine:
    """Refused: its observation has no fixed size."""
    env = CountedLine()
    env.observation_space = spaces.Text(4)  # type: ignore[assignment]
    return env


def third_fails() -> CountedLine:
    """The third game of a process cannot be made."""
    if OPEN["made"] >= 2:
        raise RuntimeError("no licence left")
    return CountedLine()


def no_env(num_envs: int) -> CountedLine:
    """Takes num_envs and returns no `BatchedEnv`."""
    return CountedLine()
