"""A policy behind the Go Text Protocol, version 2, which boards of go and of other games speak.

Source: Farneback 2002, Specification of the Go Text Protocol, version 2.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TextIO

from league.deploy.engines.engine_game import EngineGame, RefusedMove
from league.envs.notation.notation import CHESS, GO
from league.version import __version__

BLACK, WHITE = ("black", "b"), ("white", "w")
"""Words of the protocol. Black begins, but for chess."""
PREFIX = "command_"


class GtpError(Exception):
    """A command that fails; the text is the answer."""


class GtpEngine:
    """Answers commands about one game. A public name of the protocol is a method with the prefix `command_`.

    Args:
      name: of the engine.
    """

    def __init__(self, game: EngineGame, *, name: str) -> None:
        self._game, self._name = game, name
        self._colours = (WHITE, BLACK) if game.notation.game == CHESS else (BLACK, WHITE)
        self._commands: dict[str, Callable[..., str]] = {
            key.removeprefix(PREFIX): getattr(self, key) for key in dir(self) if key.startswith(PREFIX)
        }

    def run(self, lines: Iterable[str], out: TextIO) -> None:
        """Answer every line until `quit` or the end of the input."""
        for line in lines:
            words = line.partition("#")[0].split()
            if not words:
                continue
            number = words.pop(0) if words[0].isdecimal() else ""
            if not words:
                continue
            try:
                answer = f"={number} {self._answer(words[0], words[1:])}".rstrip()
            except (GtpError, RefusedMove) as error:
                answer = f"?{number} {error}"
            out.write(f"{answer}\n\n")
            out.flush()
            if words[0] == "quit":
                return

    def _answer(self, command: str, arguments: list[str]) -> str:
        method = self._commands.get(command)
        if method is None:
            raise GtpError("unknown command")
        try:
            inspect.signature(method).bind(*arguments)
        except TypeError as error:
            raise GtpError("syntax error") from error
        return method(*arguments)

    def command_protocol_version(self) -> str:
        """The number of the protocol."""
        return "2"

    def command_name(self) -> str:
        """The policy."""
        return self._name

    def command_version(self) -> str:
        """Of this program."""
        return __version__

    def command_known_command(self, command: str) -> str:
        """Says true or false."""
        return str(command in self._commands).lower()

    def command_list_commands(self) -> str:
        """One in a line."""
        return "\n".join(sorted(self._commands))

    def command_quit(self) -> str:
        """The loop ends after the answer."""
        return ""

    def command_boardsize(self, size: str) -> str:
        """Of go the size that was learnt; other boards have one size, and any is taken for it."""
        notation = self._game.notation
        if notation.game == GO and size != str(notation.board_size):
            raise GtpError("unacceptable size")
        return self.command_clear_board()

    def command_clear_board(self) -> str:
        """A new game."""
        self._game.restart()
        return ""

    def command_komi(self, komi: str) -> str:
        """The komi that was learnt is the only one."""
        try:
            wanted = float(komi)
        except ValueError as error:
            raise GtpError("komi not a float") from error
        if self._game.notation.game == GO and wanted != self._game.notation.komi:
            raise GtpError(f"this policy was trained with a komi of {self._game.notation.komi:g}")
        return ""

    def command_play(self, colour: str, move: str) -> str:
        """A move of either side, in its turn."""
        self._require_turn(colour)
        try:
            self._game.play(self._spelt(move))
        except RefusedMove as error:
            raise GtpError(f"illegal move: {error}") from error
        return ""

    def command_genmove(self, colour: str) -> str:
        """The policy's move, made."""
        self._require_turn(colour)
        return self._game.choose()

    def command_undo(self) -> str:
        """Take the last move back."""
        names = self._game.names
        if not names:
            raise GtpError("cannot undo")
        self._game.follow(names[:-1])
        return ""

    def command_time_settings(self, main: str, period: str, stones: str) -> str:
        """Moves take the time that they take: nothing to set."""
        return ""

    def command_time_left(self, colour: str, time: str, stones: str) -> str:
        """As `time_settings`."""
        return ""

    def _spelt(self, move: str) -> str:
        """A move as the notation writes it: vertices are capitals in go and small letters elsewhere."""
        return move.upper() if self._game.notation.game == GO else move.lower()

    def _require_turn(self, colour: str) -> None:
        seats = [seat for seat, words in enumerate(self._colours) if colour.lower() in words]
        if not seats:
            raise GtpError("invalid color")
        if self._game.over:
            raise GtpError("the game is over")
        if seats[0] != self._game.seat:
            raise GtpError(f"it is the turn of {self._colours[self._game.seat][0]}")
