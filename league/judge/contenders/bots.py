"""Scripted bots as contenders: `bot:random`, `bot:mcts:100`, `bot:path/file.py:attribute`."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from league.agents.acting.policy import BotPolicy, Policy
from league.core.state.records import bot_name
from league.envs.bots import is_own_bot, make_bot
from league.judge.contenders.contender import Game, OpenConditions, identity_of
from league.policies.frozen import FrozenCopy

SEARCH = "mcts"
"""The bot whose name ends with the number of its simulations."""


@dataclass(frozen=True)
class BotContender:
    """A bot that is made again for every match, with draws of its own; fields as of `Contender`."""

    name: str
    identity: str
    reason: str = "a scripted bot"
    game: Game | None = None
    copies: tuple[FrozenCopy, ...] = ()

    @contextmanager
    def open(self, game: Game, conditions: OpenConditions) -> Iterator[Policy]:
        yield bot_policy(self.name, seed=conditions.seed)


def bot_policy(name: str, *, seed: int) -> BotPolicy:
    """A scripted bot ("random", "tactical", "mcts:N", also as "bot:NAME") with a stream of its own.

    Raises:
      EnvError: no such bot.
    """
    name = bot_name(name)
    return BotPolicy(make_bot(name, seed=zlib.crc32(f"{seed}/{name}".encode())))


def simulations_of(name: str) -> int:
    """Simulations of a move of the bot "mcts:N", also written "bot:mcts:N"; 0 of any other bot."""
    kind, _, count = bot_name(name).partition(":")
    return int(count) if kind == SEARCH and count.isdecimal() else 0


def find_bot(written: str) -> tuple[BotContender, ...]:
    """The bot of a name. Its identity is that of the name, and of the file of a bot of the user's own.

    Raises:
      EnvError: no such bot.
    """
    name = bot_name(written)
    make_bot(name, seed=0)
    file = Path(name.partition(":")[0])
    code = hashlib.sha256(file.read_bytes()).hexdigest() if is_own_bot(name) and file.is_file() else ""
    return (BotContender(written, identity_of("bot", name, code)),)
