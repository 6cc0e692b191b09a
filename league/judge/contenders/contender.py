"""The contract of a contender: a name, an identity by which results are stored, and a policy to play with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from league.agents.acting.policy import Policy
from league.config.game_kind import kind_of_game
from league.core.state.records import GameKind
from league.envs.protocol import EnvConfig, EnvSpec
from league.errors import LeagueError
from league.policies.frozen import FrozenCopy


class UnknownContender(LeagueError):  # noqa: N818
    """A written contender stands for nothing, or cannot take part."""


@dataclass(frozen=True)
class Game:
    """The game that contenders play. env: how it is made; spec: its facts; kind: None where nobody has decided it."""

    env: EnvConfig
    spec: EnvSpec
    kind: GameKind | None = None

    @property
    def must_mix(self) -> bool:
        """True if policies are judged by sampled actions.

        Raises:
          EnvError: its kind is not known, and it cannot be made.
        """
        return (self.kind or kind_of_game(replace(self.env, workers=0), self.spec)).must_mix


@dataclass(frozen=True)
class OpenConditions:
    """The conditions under which a contender plays.

    Fields:
      seed: of draws that are the contender's own, such as a bot's.
      greedy: whether networks take the likeliest action; bots and engines have rules of their own.
      search: simulations of networks before each move, which is then the most visited one; 0 for none.
    """

    seed: int
    greedy: bool
    search: int = 0


def plain_game(env: EnvConfig, spec: EnvSpec, kind: GameKind | None = None) -> Game:
    """A game without the env's own format, which other processes need not be able to read."""
    return Game(env, replace(spec, user_format=None), kind)


class Contender(Protocol):
    """Someone who can take part in matches. It can be sent to another process, and opened any number of times.

    Fields:
      name: as it was written; shown in tables.
      identity: sha256 (hex) of what plays: of the weights, or of the words that name a bot or an engine.
      reason: one sentence on what it is.
      game: the game that it was trained on; None for a bot or an engine, which takes the others' game.
      copies: its weights, one entry for each member of a mixture; empty where it has none.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def game(self) -> Game | None: ...

    @property
    def copies(self) -> tuple[FrozenCopy, ...]: ...

    def open(self, game: Game, conditions: OpenConditions) -> AbstractContextManager[Policy]:
        """The policy of one match, which ends with the context.

        Raises:
          LeagueError, EnvError: it cannot play this game.
        """
        ...


@contextmanager
def open_lineup(lineup: Iterable[Contender], game: Game, conditions: OpenConditions) -> Iterator[list[Policy]]:
    """The policies of some contenders, which all end with the context. Raises as `Contender.open`."""
    with ExitStack() as opened:
        yield [opened.enter_context(contender.open(game, conditions)) for contender in lineup]


@runtime_checkable
class Fallible(Protocol):
    """A policy that may fail in a game, such as somebody's program. It needs the history of the games.

    last_failure: a clause on how it failed last; empty before.
    """

    last_failure: str

    def failed_games(self) -> list[int]:
        """Games of the env in which it failed since the last call; they are aborted and count for nobody."""
        ...


Finder = Callable[[str], tuple[Contender, ...]]
"""Turns a written contender into those that it stands for: one, or all snapshots of a folder.

Raises LeagueError where it stands for nothing, EnvError where its game cannot be made."""


def identity_of(kind: str, *facts: object) -> str:
    """sha256 (hex) over the kind of a contender and the facts that say how it plays, as JSON."""
    return hashlib.sha256(json.dumps([kind, *facts], sort_keys=True).encode()).hexdigest()
