"""Moves of chess: the actions of OpenSpiel's and PettingZoo's chess as UCI moves, over a board of the package chess."""

from __future__ import annotations

from typing import Any

import chess
import pyspiel
from pettingzoo.classic.chess import chess_utils

from league.envs.notation.notation import CHESS, Notation
from league.envs.protocol import EnvConfig, EnvError, EnvSpec

COLOURS = ("white", "black")
PLANES = 73
"""Kinds of moves from one square in PettingZoo's actions."""


class ChessPosition:
    """A game of chess. board: before the next move, with all moves so far."""

    def __init__(self) -> None:
        self.board = chess.Board()
        self._known: dict[int, chess.Move] | None = None

    def moves(self) -> dict[int, chess.Move]:
        """The legal moves by their actions."""
        if self._known is None:
            self._known = self._legal()
        return self._known

    def _legal(self) -> dict[int, chess.Move]:
        raise NotImplementedError

    def push(self, action: int) -> None:
        self.board.push(self.moves()[action])
        self._known = None

    def name(self, action: int) -> str:
        """See `Position.name`: the move in UCI, such as e2e4 or e7e8q."""
        return self.moves()[action].uci()

    def action(self, name: str) -> int:
        for action, move in self.moves().items():
            if move.uci() == name:
                return action
        raise ValueError(f"{name} is no legal move in {self.board.fen()}")

    def short_name(self, action: int) -> str:
        """The move in standard algebraic notation, such as Nf3, for records."""
        return self.board.san(self.moves()[action])


class OpenSpielChess(ChessPosition):
    """OpenSpiel's actions: its own state names them."""

    def __init__(self) -> None:
        super().__init__()
        self._state: Any = pyspiel.load_game("chess").new_initial_state()

    def _legal(self) -> dict[int, chess.Move]:
        state = self._state
        return {action: self.board.parse_san(state.action_to_string(action)) for action in state.legal_actions()}

    def push(self, action: int) -> None:
        super().push(action)
        self._state.apply_action(action)


class PettingZooChess(ChessPosition):
    """PettingZoo's actions: the square and the kind of a move, seen from the side that moves."""

    def _legal(self) -> dict[int, chess.Move]:
        return {self._number(move): move for move in self.board.legal_moves}

    def _number(self, move: chess.Move) -> int:
        seen = move if self.board.turn == chess.WHITE else chess_utils.mirror_move(move)
        column, row = chess_utils.square_to_coord(seen.from_square)
        return int((column * 8 + row) * PLANES + chess_utils.get_move_plane(seen))


def openspiel_chess(env: EnvConfig, spec: EnvSpec) -> Notation:
    """The notation of `openspiel:chess`.

    Raises:
      EnvError: it has options: only the standard start has a notation.
    """
    if env.kwargs:
        raise EnvError(f"{env.id} with {env.kwargs}: only standard chess has names of moves; leave the options out")
    return Notation(CHESS, OpenSpielChess, COLOURS)


def pettingzoo_chess(env: EnvConfig, spec: EnvSpec) -> Notation:
    """The notation of `pettingzoo:classic/chess_v6`."""
    return Notation(CHESS, PettingZooChess, COLOURS)
