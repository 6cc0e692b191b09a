"""The contract of a notation, and the registry from games to notations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from league.envs.plugins import PluginError, install_extra, load
from league.envs.protocol import EnvConfig, EnvError, EnvSpec

CHESS, GO, BOARD = "chess", "go", "board"
"""Games as engines know them; a board game that no engine here plays."""


class Position(Protocol):
    """One game in progress, as a notation sees it."""

    def push(self, action: int) -> None:
        """Make a legal move, given as the env's action."""
        ...

    def name(self, action: int) -> str:
        """The move of a legal action: in UCI for chess, as a GTP vertex for go."""
        ...

    def action(self, name: str) -> int:
        """The action of a move's name.

        Raises:
          ValueError: it names no move that can be made here.
        """
        ...


@dataclass(frozen=True)
class Notation:
    """The notation of one game.

    Fields:
      game: CHESS, GO or BOARD.
      start: makes the position before the first move.
      colours: names of the seats in records.
      board_size, komi: of go.
    """

    game: str
    start: Callable[[], Position]
    colours: tuple[str, str]
    board_size: int = 0
    komi: float = 0.0


NOTATIONS: Mapping[str, str] = {
    r"openspiel:chess(\(\))?": "league.envs.notation.chess_moves:openspiel_chess",
    r"pettingzoo:classic/chess[_-]v\d+": "league.envs.notation.chess_moves:pettingzoo_chess",
    r"openspiel:go(\(.*\))?": "league.envs.notation.go_moves:openspiel_go",
    r"pettingzoo:classic/go[_-]v\d+": "league.envs.notation.go_moves:pettingzoo_go",
    r"connect_four": "league.envs.notation.board_moves:columns",
    r"tic_tac_toe": "league.envs.notation.board_moves:squares",
    r"othello": "league.envs.notation.board_moves:othello",
}
"""Pattern of an env's id -> "module:attribute" of a function from the game's config and spec to its notation."""


def notation_of(env: EnvConfig, spec: EnvSpec) -> Notation | None:
    """The notation of a game; None where its moves have no names here.

    Raises:
      EnvError: the package that names its moves is missing, or the game is set in a way that has no notation.
    """
    for pattern, target in NOTATIONS.items():
        if re.fullmatch(pattern, env.id):
            try:
                make = cast(Callable[[EnvConfig, EnvSpec], Notation], load(target))
            except (ImportError, PluginError) as error:
                raise EnvError(f"{env.id}: a package is missing ({error}); {install_extra('classic')}") from error
            return make(env, spec)
    return None
