"""The process that plays batches for a tournament: it ends when its parent does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from league.agents.torch_runtime import prepare_process
from league.envs.plugins import admit
from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.contenders.contender import plain_game
from league.judge.tournaments.batches import BatchJob, BatchOutcome, Field, play_job

SIGN_EVERY_S = 1.0


@dataclass(frozen=True)
class Alive:
    """The process is playing."""


@dataclass(frozen=True)
class Failure:
    """A batch cannot be played at all. sentence: for the user."""

    sentence: str


def serve(connection: Connection, field: Field) -> None:
    """Play batches until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare_process()
    try:
        play = player_of(field)
        while True:
            job = connection.recv()
            assert isinstance(job, BatchJob)
            connection.send(play(job, _signs(connection)))
    except (LeagueError, EnvError) as error:
        connection.send(Failure(str(error)))
    except (EOFError, OSError):
        return


def player_of(field: Field) -> Callable[[BatchJob, Callable[[], None]], BatchOutcome]:
    """A function that plays batches in this process, given a sign of life to call.

    Raises:
      EnvError: the game cannot be made here.
    """
    admit(field.admitted)
    game = plain_game(field.env, spec_of(replace(field.env, workers=0)))
    return lambda job, sign_of_life: play_job(field, game, job, sign_of_life=sign_of_life)


def _signs(connection: Connection) -> Callable[[], None]:
    """A function that tells the parent now and then that play continues."""
    due = time.monotonic() + SIGN_EVERY_S

    def sign() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + SIGN_EVERY_S
            connection.send(Alive())

    return sign


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
