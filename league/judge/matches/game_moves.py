"""The actions of games while they are played: the history that engines read, and the record of finished games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec, Turn


@dataclass(frozen=True)
class PlayedGame:
    """One finished game.

    Fields:
      group: number of its group. rotation: of the contenders over the teams.
      moves: its numbered actions in their order, those of the random opening first.
      opening: how many of them are the opening.
      returns: [S] undiscounted return of each seat.
    """

    group: int
    rotation: int
    moves: tuple[int, ...]
    opening: int
    returns: tuple[float, ...]


GameSink = Callable[[PlayedGame], None]
"""Called with every game that ended by its rules, in the order of groups and rotations."""


class MoveHistory:
    """The numbered actions so far of each of N games."""

    def __init__(self, num_games: int) -> None:
        self.moves: list[list[int]] = [[] for _ in range(num_games)]
        self._opening = [0] * num_games

    def add(self, turn: Turn, actions: NDArray[np.generic], alive: NDArray[np.bool_]) -> None:
        """Note the actions [K] of a turn's slots, in the games that are still played."""
        for game, action in zip(turn.env_index.tolist(), actions.tolist(), strict=True):
            if alive[game]:
                self.moves[game].append(action)

    def restart(self, ended: NDArray[np.bool_]) -> None:
        """Forget games bool [N] that ended inside their opening and have begun again."""
        for game in np.flatnonzero(ended).tolist():
            self.moves[game].clear()

    def end_opening(self) -> None:
        """Every move from here on is a policy's."""
        self._opening = [len(moves) for moves in self.moves]

    def played(self, game: int, *, group: int, rotation: int, returns: Sequence[float]) -> PlayedGame:
        """A finished game."""
        return PlayedGame(group, rotation, tuple(self.moves[game]), self._opening[game], tuple(returns))


def has_numbered_moves(spec: EnvSpec) -> bool:
    """True if the actions of a game are numbers, so that its moves can be noted."""
    return spec.actions.kind == "categorical"
