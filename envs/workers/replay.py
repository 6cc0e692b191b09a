"""Positions of games, kept as the actions that led there, so that a new process can put them back.

A game in the middle of an episode is its seed and its actions. Whatever a process held is lost with it; a game whose
actions are known is played again up to its last turn, and compared with what it showed there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import Turn

MAX_STEPS = 4096
"""Steps that are kept; a game in a longer episode is not played again but starts its next one."""


@dataclass(frozen=True)
class ReplayedPosition:
    """Where a game is.

    Fields:
      episode: its number.
      answers: per step of the episode the actions of the game's slots; empty to start the episode.
      shown: digest of what the game showed after these steps but the last, which is still to be taken; empty if none
        of it is to be taken.
      lost: the episode before was given up, so that the turn marks the game as aborted.
    """

    episode: int
    answers: Sequence[Sequence[Any]] = ()
    shown: str = ""
    lost: bool = False


@runtime_checkable
class ReplayableEnv(Protocol):
    """An env whose games depend on their own seed and actions alone, stepped one by one."""

    @property
    def episodes(self) -> list[int]:
        """[n] number of the episode that each game is in."""
        ...

    def number_games_from(self, first: int) -> None:
        """Seed and name the games as `first`, `first + 1`, ... of a larger batch."""
        ...

    def report_to(self, place: memoryview) -> None:
        """Write every call of a game to `place`, int64 [4], before it is made: see `SharedTurn.place`."""
        ...

    def resume(self, seed: int, positions: Sequence[ReplayedPosition | None]) -> Turn:
        """Put each game where it was and take its last step; None for a game that is not played any more."""
        ...


def digest(turn: Turn, rows: NDArray[np.int64]) -> str:
    """Digest of what the slots in `rows` see."""
    found = hashlib.sha1(turn.seat[rows].tobytes(), usedforsecurity=False)
    for name in sorted(turn.obs):
        found.update(np.ascontiguousarray(turn.obs[name][rows]).tobytes())
    if turn.action_mask is not None:
        found.update(turn.action_mask[rows].tobytes())
    return found.hexdigest()


class StepLog:
    """The actions of n games since the start of the oldest episode in progress."""

    def __init__(self, num_games: int) -> None:
        self._began = np.zeros(num_games, np.int64)
        self._taken = 0
        self._dropped = 0
        self._games: list[NDArray[np.int64]] = []
        self._actions: list[NDArray[np.generic]] = []

    def take(self, env_index: NDArray[np.int64], actions: NDArray[np.generic]) -> None:
        """Note the answers to a turn. env_index: int64 [K]; actions: [K, ...]."""
        self._games.append(env_index.copy())
        self._actions.append(actions.copy())
        self._taken += 1
        if len(self._games) >= 2 * MAX_STEPS or self._taken % 64 == 0:
            self._drop(max(int(self._began.min()), self._taken - MAX_STEPS))

    def ended(self, games: NDArray[np.bool_]) -> None:
        """The episodes of these games ended with the last step. games: bool [n]."""
        self._began[games] = self._taken

    def answers(self, game: int) -> list[list[Any]] | None:
        """The actions of a game in its present episode, per step; None where it is too long."""
        start = int(self._began[game]) - self._dropped
        if start < 0 or self._taken - int(self._began[game]) > MAX_STEPS:
            return None
        steps = zip(self._games[start:], self._actions[start:], strict=True)
        return [actions[games == game].tolist() for games, actions in steps]

    def _drop(self, until: int) -> None:
        count = until - self._dropped
        if count > 0:
            del self._games[:count], self._actions[:count]
            self._dropped = until


def plain(position: ReplayedPosition | None) -> Mapping[str, Any] | None:
    """A position for JSON."""
    return None if position is None else {**vars(position)}
