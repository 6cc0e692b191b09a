"""Programs that play chess by the Universal Chess Interface, through the package chess: `uci:stockfish?nodes=100`."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import chess.engine

from league.envs.notation.chess_moves import ChessPosition, OpenSpielChess
from league.envs.notation.notation import CHESS, Notation, Position
from league.judge.contenders.engine import START_S, EngineCommand, EngineContender, EngineFailed, engine_contender
from league.processes.child_process import end_group, end_with_parent

LIMITS = ("nodes", "depth", "time")
"""Options that limit the search for a move: nodes, plies or seconds; every other option is the engine's own."""
DEFAULT_NODES = 1_000
ALWAYS = {"Threads": "1"}
"""Options unless others are given: one thread gives the same move again."""

T = TypeVar("T")


def find_uci(written: str) -> tuple[EngineContender, ...]:
    """The engine of uci:PROGRAM?nodes=100&Skill_Level=3; "_" stands for a space in the engine's own options.

    Raises:
      UnknownContender: it is not there, or does not start.
    """
    board = Notation(CHESS, OpenSpielChess, ("white", "black"))
    return (engine_contender(written, plays=CHESS, start="league.judge.contenders.uci:UciProgram", notation=board),)


class UciProgram:
    """A running program. Raises EngineFailed: it does not start, or refuses an option."""

    def __init__(self, command: EngineCommand, notation: Notation) -> None:
        self._deadline_s = command.deadline_s
        self._limit = _limit_of(command)
        self._loop = asyncio.new_event_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        try:
            self._transport, self._protocol = self._within(START_S, _started(command.program))
            own = {name.replace("_", " "): value for name, value in command.options.items() if name not in LIMITS}
            known = self._protocol.options
            wanted = {**{name: value for name, value in ALWAYS.items() if name in known}, **own}
            self._within(START_S, self._protocol.configure(wanted))
        except EngineFailed:
            self.close()
            raise

    @property
    def title(self) -> str:
        return str(self._protocol.id.get("name", "without a name"))

    def move(self, position: Position, moves: Sequence[str], *, game: object) -> str:
        assert isinstance(position, ChessPosition)
        played = self._within(
            self._deadline_s, self._protocol.play(position.board, self._limit, game=game, info=chess.engine.INFO_NONE)
        )
        if played.move is None:
            raise EngineFailed("gave no move")
        return str(played.move.uci())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        if self._transport is not None:
            end_group(self._transport.get_pid())
            with contextlib.suppress(EngineFailed):
                self._within(1.0, asyncio.wait_for(self._protocol.returncode, 1.0))
            self._transport.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _within(self, seconds: float, answer: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, within a deadline.

        Raises:
          EngineFailed: nothing in time, or an error of the engine.
        """
        try:
            return self._loop.run_until_complete(asyncio.wait_for(answer, seconds))
        except TimeoutError as error:
            raise EngineFailed("did not answer in time") from error
        except (chess.engine.EngineError, OSError, ValueError) as error:
            raise EngineFailed(f"failed: {error}") from error


async def _started(program: str) -> tuple[asyncio.SubprocessTransport, chess.engine.UciProtocol]:
    return await chess.engine.popen_uci([program], setpgrp=True, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)


def _limit_of(command: EngineCommand) -> chess.engine.Limit:
    """The limit of a search; `DEFAULT_NODES` where none is given.

    Raises:
      EngineFailed: one is no number above 0.
    """
    try:
        values = {name: float(command.options[name]) for name in LIMITS if name in command.options}
    except ValueError as error:
        raise EngineFailed(f"has a limit that is no number ({error})") from error
    if any(not value > 0 for value in values.values()):
        raise EngineFailed(f"has a limit of 0: {', '.join(LIMITS)} are above it")
    nodes, depth = (int(values[name]) if name in values else None for name in ("nodes", "depth"))
    if not values:
        nodes = DEFAULT_NODES
    return chess.engine.Limit(nodes=nodes, depth=depth, time=values.get("time"))
