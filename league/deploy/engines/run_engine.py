"""Opens a contender behind a protocol and answers what comes on standard input."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Protocol, TextIO

from league.deploy.engines.engine_game import EngineGame
from league.deploy.engines.gtp import GtpEngine
from league.deploy.engines.uci import UciEngine
from league.envs.notation.notation import CHESS
from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.judge.contenders.contender import OpenConditions
from league.judge.contenders.finding import find_contenders, game_of, require_playable


class Engine(Protocol):
    """Answers lines of a protocol."""

    def run(self, lines: TextIO, out: TextIO) -> None:
        """Answer every line until the protocol's word for the end, or the end of the input."""
        ...


PROTOCOLS: Mapping[str, type[GtpEngine] | type[UciEngine]] = {"gtp": GtpEngine, "uci": UciEngine}


def run_engine(written: str, *, protocol: str, env: str, greedy: bool, search: int, seed: int) -> None:
    """Play as a contender until the other side ends it.

    Args:
      written: the contender. protocol: one of `PROTOCOLS`; empty for the usual one of the game.
      env: id of the game, for a contender that brings none; else empty.
      greedy, search, seed: as of `OpenConditions`.

    Raises:
      LeagueError: there is no such contender, protocol or name of moves.
    """
    if protocol and protocol not in PROTOCOLS:
        raise LeagueError(f"--protocol {protocol}: there are {' and '.join(PROTOCOLS)}.")
    answers = sys.stdout
    # A game or a package that prints would break the protocol: what it says goes to the errors.
    with contextlib.redirect_stdout(sys.stderr):
        found = find_contenders([written])
        if len(found) != 1:
            raise LeagueError(f"{written} holds {len(found)} policies: name one of them.")
        game = game_of(found, env=EnvConfig(env) if env else None)
        require_playable(found, game)
        with found[0].open(game, OpenConditions(seed=seed, greedy=greedy, search=search)) as policy:
            played = EngineGame(game, policy, seed=seed)
            with contextlib.closing(played):
                kind = protocol or ("uci" if played.notation.game == CHESS else "gtp")
                PROTOCOLS[kind](played, name=found[0].name).run(sys.stdin, answers)
