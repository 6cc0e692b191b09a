"""Moves of go: the actions of OpenSpiel's and PettingZoo's go as vertices of the Go Text Protocol, such as D4."""

from __future__ import annotations

import functools
import math
import re

from league.envs.notation.notation import GO, Notation
from league.envs.protocol import EnvConfig, EnvError, EnvSpec

COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""Letters of columns; GTP leaves I out."""
PASS = "PASS"
COLOURS = ("black", "white")
KOMI = 7.5
"""Both packages' own."""


class GoPosition:
    """A game of go. The notation of a vertex does not depend on the stones.

    Args:
      size: of the board. from_top: whether rows are numbered from the top, as PettingZoo does.
    """

    def __init__(self, *, size: int, from_top: bool) -> None:
        self._size = size
        self._from_top = from_top

    def push(self, action: int) -> None:
        """See `Position.push`; nothing changes."""

    def name(self, action: int) -> str:
        if action == self._size**2:
            return PASS
        row, column = divmod(action, self._size)
        return f"{COLUMNS[column]}{self._size - row if self._from_top else row + 1}"

    def action(self, name: str) -> int:
        if name.upper() == PASS:
            return self._size**2
        column, row = COLUMNS.find(name[:1].upper()), name[1:]
        if not 0 <= column < self._size or not row.isdecimal() or not 1 <= int(row) <= self._size:
            raise ValueError(f"{name} is no vertex of a board of {self._size}")
        return (self._size - int(row) if self._from_top else int(row) - 1) * self._size + column


def openspiel_go(env: EnvConfig, spec: EnvSpec) -> Notation:
    """The notation of `openspiel:go(board_size=9)`.

    Raises:
      EnvError: with handicap stones.
    """
    options = {**dict(re.findall(r"(\w+)=([\d.]+)", env.id)), **{name: str(v) for name, v in env.kwargs.items()}}
    if float(options.get("handicap", 0)):
        raise EnvError(f"{env.id}: with handicap stones there are no names of moves; leave handicap out")
    return _notation(spec, komi=float(options.get("komi", KOMI)), from_top=False)


def pettingzoo_go(env: EnvConfig, spec: EnvSpec) -> Notation:
    """The notation of `pettingzoo:classic/go_v5`."""
    return _notation(spec, komi=float(str(env.kwargs.get("komi", KOMI))), from_top=True)


def _notation(spec: EnvSpec, *, komi: float, from_top: bool) -> Notation:
    size = math.isqrt(spec.actions.num_actions)
    start = functools.partial(GoPosition, size=size, from_top=from_top)
    return Notation(GO, start, COLOURS, board_size=size, komi=komi)
