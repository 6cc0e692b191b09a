"""A policy of chess behind the Universal Chess Interface, for boards and for bots of chess servers.

It moves at once, without looking at clocks: `go` answers with the move of the policy, or of its search.

Source: Huber and Meyer-Kahlen 2004, Description of the universal chess interface.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TextIO

from league.deploy.engines.engine_game import EngineGame, RefusedMove
from league.envs.notation.notation import CHESS
from league.errors import LeagueError
from league.version import __version__

NO_MOVE = "0000"
START = ("startpos",)
START_FEN = ["rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR", "w", "KQkq", "-", "0", "1"]
CENTIPAWNS, STEEPNESS = 90.0, 1.5637541897
"""Lc0's curve from an expected return q in (-1, 1) to centipawns: 90 tan(1.5637541897 q)."""


class UciEngine:
    """Follows the positions of one game after the other.

    Args:
      name: of the engine.

    Raises:
      LeagueError: the game is not chess.
    """

    def __init__(self, game: EngineGame, *, name: str) -> None:
        if game.notation.game != CHESS:
            raise LeagueError("UCI is the protocol of chess: other games are played with --protocol gtp.")
        self._game, self._name = game, name
        self._problem = ""

    def run(self, lines: Iterable[str], out: TextIO) -> None:
        """Answer every line until `quit` or the end of the input; what is not known is passed over, as UCI wants."""
        for line in lines:
            words = line.split()
            if words[:1] == ["quit"]:
                return
            for answer in self._answers(words):
                out.write(f"{answer}\n")
            out.flush()

    def _answers(self, words: list[str]) -> list[str]:
        match words:
            case ["uci"]:
                return [f"id name {self._name} (League {__version__})", "id author a self-play league", "uciok"]
            case ["isready"]:
                return ["readyok"]
            case ["ucinewgame"]:
                self._game.restart()
            case ["position", *rest]:
                self._problem = self._follow(rest)
                return [f"info string {self._problem}"] if self._problem else []
            case ["go", *_]:
                return self._go()
        return []

    def _follow(self, words: list[str]) -> str:
        """Set a position up; returns what is wrong with it."""
        split = words.index("moves") if "moves" in words else len(words)
        start, moves = words[:split], words[split + 1 :]
        if tuple(start) != START and start != ["fen", *START_FEN]:
            return "a game begins with the standard position here: its history is part of what the policy sees"
        try:
            self._game.follow(moves)
        except RefusedMove as error:
            return str(error)
        return ""

    def _go(self) -> list[str]:
        if self._problem or self._game.over:
            return [f"bestmove {NO_MOVE}"]
        value = self._game.value()
        move = self._game.choose()
        scored = [] if value is None else [f"info depth 1 score cp {_centipawns(value)} pv {move}"]
        return [*scored, f"bestmove {move}"]


def _centipawns(value: float) -> int:
    return round(CENTIPAWNS * math.tan(STEEPNESS * max(-0.999, min(0.999, value))))
