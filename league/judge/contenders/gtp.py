"""Programs that play go by the Go Text Protocol: `gtp:gnugo?level=1`.

Source: Farneback 2002, Specification of the Go Text Protocol, version 2.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from league.envs.notation.go_moves import PASS, GoPosition
from league.envs.notation.notation import GO, Notation, Position
from league.judge.contenders.engine import START_S, EngineCommand, EngineContender, EngineFailed, engine_contender
from league.processes.line_worker import LineWorker, LineWorkerFailed

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "gnugo": ("--mode", "gtp", "--chinese-rules", "--capture-all-dead", "--never-resign", "--positional-superko"),
}
"""Name of a program -> arguments with which it speaks the protocol, by rules under which all dead stones are taken."""
COLOURS = ("B", "W")


def find_gtp(written: str) -> tuple[EngineContender, ...]:
    """The engine of gtp:PROGRAM?name=value; each option is given to the program as --name value.

    Raises:
      UnknownContender: it is not there, or does not start.
    """
    board = Notation(GO, lambda: GoPosition(size=9, from_top=False), ("black", "white"), board_size=9, komi=7.5)
    return (engine_contender(written, plays=GO, start="league.judge.contenders.gtp:GtpProgram", notation=board),)


class GtpProgram:
    """A running program. Raises EngineFailed: it does not start."""

    def __init__(self, command: EngineCommand, notation: Notation) -> None:
        words = [command.program, *ARGUMENTS.get(Path(command.program).name, ())]
        for name, value in command.options.items():
            words += [f"--{name}", value]
        self._deadline_s = command.deadline_s
        try:
            self._process = LineWorker(words, ends_with_parent=True)
        except LineWorkerFailed as error:
            raise EngineFailed(str(error)) from error
        self._board = (f"boardsize {notation.board_size}", f"komi {notation.komi:g}")
        self._game: object = None
        self._shown = 0
        try:
            self._title = f"{self._ask('name')} {self._ask('version')}".strip()
        except EngineFailed:
            self.close()
            raise

    @property
    def title(self) -> str:
        return self._title

    def move(self, position: Position, moves: Sequence[str], *, game: object) -> str:
        """See `EngineProgram`. It is shown the whole game again where it played another one since."""
        if game is not self._game:
            for command in (*self._board, "clear_board"):
                self._ask(command)
            self._game, self._shown = game, 0
        for number in range(self._shown, len(moves)):
            self._ask(f"play {COLOURS[number % 2]} {moves[number]}")
        vertex = self._ask(f"genmove {COLOURS[len(moves) % 2]}", deadline_s=self._deadline_s)
        self._shown = len(moves) + 1
        if vertex.lower() == "resign":  # no env has such a move: it passes, and is shown that
            self._shown = len(moves)
            return PASS
        return vertex

    def close(self) -> None:
        self._process.end()

    def _ask(self, command: str, *, deadline_s: float = START_S) -> str:
        """The answer to a command.

        Raises:
          EngineFailed: none in time, or an error.
        """
        deadline = time.monotonic() + deadline_s
        try:
            self._process.send(command.encode())
            while not (line := self._line(deadline)):
                pass
            while self._line(deadline):  # an answer ends with an empty line
                pass
        except LineWorkerFailed as error:
            raise EngineFailed(str(error)) from error
        if not line.startswith("="):
            raise EngineFailed(f"refused {command!r}: {line.lstrip('? ')}")
        return line[1:].strip()

    def _line(self, deadline: float) -> str:
        return self._process.line(deadline=deadline).decode(errors="replace").rstrip("\r")
