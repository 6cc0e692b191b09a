"""Moves of small board games: a column from 1, or a square such as b2."""

from __future__ import annotations

import functools

from league.envs.notation.notation import BOARD, Notation
from league.envs.protocol import EnvConfig, EnvSpec

COLOURS = ("first", "second")


class NamedMoves:
    """Moves whose names do not depend on the position. names: of the actions."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def push(self, action: int) -> None:
        """See `Position.push`; nothing changes."""

    def name(self, action: int) -> str:
        return self._names[action]

    def action(self, name: str) -> int:
        if name not in self._names:
            raise ValueError(f"{name} is none of the moves {' '.join(self._names)}")
        return self._names.index(name)


def columns(env: EnvConfig, spec: EnvSpec) -> Notation:
    """A move is the number of a column, from 1 on the left."""
    return _named(tuple(str(column + 1) for column in range(spec.actions.num_actions)))


def squares(env: EnvConfig, spec: EnvSpec) -> Notation:
    """A move is a square of a board of three columns, a to c, and rows from the top."""
    return _named(tuple(f"{'abc'[square % 3]}{square // 3 + 1}" for square in range(spec.actions.num_actions)))


def othello(env: EnvConfig, spec: EnvSpec) -> Notation:
    """A move is a square, a to h and 1 to 8 from the top, or a pass."""
    squares = tuple(f"{'abcdefgh'[square % 8]}{square // 8 + 1}" for square in range(64))
    return _named((*squares, "pass"))


def _named(names: tuple[str, ...]) -> Notation:
    return Notation(BOARD, functools.partial(NamedMoves, names), COLOURS)
