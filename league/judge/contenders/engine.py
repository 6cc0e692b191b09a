"""Programs that play chess or go as contenders: how they are named, and what their failures cost.

Shape letters: K slots.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from league.agents.acting.policy import ActInputs, ActOutputs, Policy
from league.envs.notation.notation import Notation, Position, notation_of
from league.envs.plugins import load
from league.judge.contenders.contender import Game, OpenConditions, UnknownContender, identity_of
from league.policies.frozen import FrozenCopy

MAX_STRIKES = 3
"""Failures after which a program is not started again within a batch of games."""
DEADLINE_S = 60.0
"""Seconds that a move may take."""
START_S = 60.0
"""Seconds that a program may take to start or to answer anything but a request for a move."""
FOLDERS = ("/usr/games", "/usr/local/games")
"""Where systems keep games, beside the folders of $PATH."""


class EngineFailed(Exception):  # noqa: N818 - what happened to one program
    """A program died, was too late, or answered what cannot be used; the text is a clause on it."""


class EngineProgram(Protocol):
    """A running program."""

    @property
    def title(self) -> str:
        """Its own name and version."""
        ...

    def move(self, position: Position, moves: Sequence[str], *, game: object) -> str:
        """The name of its move.

        Args:
          position: before the move. moves: names of all moves so far.
          game: equal for moves of one game.
        Raises:
          EngineFailed: it gave none in time.
        """
        ...

    def close(self) -> None:
        """End it; may be called twice."""
        ...


@dataclass(frozen=True)
class EngineCommand:
    """A written engine, taken apart.

    Fields:
      protocol: "uci" or "gtp". program: its path. deadline_s: for a move.
      options: its own, as text.
    """

    protocol: str
    program: str
    deadline_s: float
    options: Mapping[str, str]


@dataclass(frozen=True)
class EngineContender:
    """A program that plays one game; fields as of `Contender`.

    plays: the game, as notations call it. start: "module:attribute" of a function that starts the program.
    """

    name: str
    identity: str
    reason: str
    command: EngineCommand
    plays: str
    start: str
    game: Game | None = None
    copies: tuple[FrozenCopy, ...] = ()

    @contextmanager
    def open(self, game: Game, conditions: OpenConditions) -> Iterator[Policy]:
        notation = notation_of(game.env, game.spec)
        if notation is None or notation.game != self.plays:
            raise UnknownContender(f"{self.name} plays {self.plays}, and {game.env.id} is no such game.")
        policy = EnginePolicy(lambda: load(self.start)(self.command, notation), notation)
        try:
            yield policy
        finally:
            policy.close()


class EnginePolicy:
    """Lets a program move in every game of a batch, one after the other.

    Where it fails, the game is aborted and a new process plays the next one; after `MAX_STRIKES` none does.
    """

    version = -1

    def __init__(self, start: Callable[[], EngineProgram], notation: Notation) -> None:
        self._start = start
        self._notation = notation
        self._program: EngineProgram | None = None
        self.last_failure = ""
        self._strikes = 0
        self._failed: list[int] = []
        self._games: dict[int, _Followed] = {}

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """See `Policy.act`. A game in which it fails gets any legal move, which counts for nothing."""
        assert inputs.history is not None and inputs.turn.action_mask is not None, (
            "engines follow games by their history"
        )
        actions = inputs.turn.action_mask[inputs.slots].argmax(axis=1)
        for place, slot in enumerate(inputs.slots.tolist()):
            game = int(inputs.turn.env_index[slot])
            try:
                action = self._move(game, inputs.history[game])
                if not inputs.turn.action_mask[slot][action]:
                    raise EngineFailed(f"gave an illegal move, action {action}")
                actions[place] = action
            except EngineFailed as error:
                self._strike(game, str(error))
        return ActOutputs(actions=actions, log_probs=np.zeros(len(inputs.slots), np.float32), core=inputs.core)

    def failed_games(self) -> list[int]:
        failed, self._failed = self._failed, []
        return failed

    def close(self) -> None:
        """End the program; may be called twice."""
        program, self._program = self._program, None
        if program is not None:
            program.close()

    def _move(self, game: int, history: Sequence[int]) -> int:
        if self._strikes >= MAX_STRIKES:
            raise EngineFailed("has failed too often")
        followed = self._games.get(game)
        if followed is None or not followed.continues(history):
            followed = self._games[game] = _Followed(self._notation.start())
        followed.follow(history)
        if self._program is None:
            self._program = self._start()
        name = self._program.move(followed.position, followed.names, game=followed.token)
        try:
            return followed.position.action(name)
        except ValueError as error:
            raise EngineFailed(str(error)) from error

    def _strike(self, game: int, reason: str) -> None:
        if self._strikes < MAX_STRIKES:
            self.last_failure = reason
        self._strikes += 1
        self._failed.append(game)
        self.close()


class _Followed:
    """A game as far as a program has been shown it."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self.names: list[str] = []
        self.token = object()
        self._moves: list[int] = []

    def continues(self, history: Sequence[int]) -> bool:
        """True if a history begins with the moves followed so far."""
        return list(history[: len(self._moves)]) == self._moves

    def follow(self, history: Sequence[int]) -> None:
        """Make the moves that are new in a history."""
        for action in history[len(self._moves) :]:
            self.names.append(self.position.name(action))
            self.position.push(action)
            self._moves.append(action)


def engine_command(written: str) -> EngineCommand:
    """Take PROTOCOL:PROGRAM?option=value&option=value apart; the option `deadline` is ours, in seconds.

    Raises:
      UnknownContender: the program is not there, or an option has no value.
    """
    protocol, _, rest = written.partition(":")
    program, _, query = rest.partition("?")
    options = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise UnknownContender(
                f"{written}: {part!r} is no option; write {protocol}:{program}?name=value&name=value."
            )
        options[name] = value
    path = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS]))
    if path is None:
        raise UnknownContender(f"{written}: there is no program {program!r} here; install it, or give its path.")
    deadline = options.pop("deadline", str(DEADLINE_S))
    try:
        return EngineCommand(protocol, str(Path(path).absolute()), float(deadline), options)
    except ValueError:
        raise UnknownContender(f"{written}: deadline={deadline!r} is no number of seconds.") from None


def engine_contender(written: str, *, plays: str, start: str, notation: Notation) -> EngineContender:
    """The contender of a written engine; the program is started once, to ask for its own name.

    Args:
      plays, start: as of `EngineContender`. notation: of any game of that kind.
    Raises:
      UnknownContender: it is not there, or does not start.
    """
    command = engine_command(written)
    try:
        program: EngineProgram = load(start)(command, notation)
    except EngineFailed as error:
        raise UnknownContender(f"{written}: the program {error}.") from error
    try:
        title = program.title
    finally:
        program.close()
    identity = identity_of(command.protocol, title, dict(command.options))
    return EngineContender(written, identity, f"the engine {title}", command, plays, start)
