"""Tasks in processes of this machine: each is done once, whichever process dies, and none is waited for for ever.

A process makes what it needs once and then does one task after another. It shows signs of life; one that dies or hangs
is replaced. The same on the machines of a Ray cluster is `league.hosts.on_ray.tasks`.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic

from league.agents.torch_runtime import prepare_process
from league.envs.protocol import EnvError
from league.envs.workers.child_endings import ending
from league.errors import LeagueError
from league.processes.tasks import (
    MAX_LIVES,
    MAX_SILENCE_S,
    WAIT_S,
    Answer,
    Make,
    SignOfLife,
    Task,
    TaskRefused,
    TasksFailed,
)

logger = logging.getLogger(__name__)

LEAVE_S = 2.0
"""Patience with processes that are to end."""
SIGN_EVERY_S = 1.0
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""A server imports once what every process needs, torch among it: three to five seconds of a core each."""


@dataclass(frozen=True)
class _Alive:
    """The process does its task."""


@dataclass
class _Worker(Generic[Task]):
    """One process. task: that it does, None when idle; seen: when it last showed a sign of life."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    task: Task | None
    seen: float


class TaskProcesses(Generic[Task, Answer]):
    """Does tasks in several processes of one torch thread each; a context manager that ends them.

    Args:
      make, setup: see `Make`; both travel to each process.
      jobs: processes, at least 1.
      name_of: a task for people.
      lost: given a task, the id of the process that did it and how that ended; returns whether it is done again. None
        does it again until `MAX_LIVES` processes have ended over it.
    """

    def __init__(
        self,
        make: Make,
        setup: object,
        *,
        jobs: int,
        name_of: Callable[[Task], str] = str,
        lost: Callable[[Task, int, str], bool] | None = None,
    ) -> None:
        self._make, self._setup = make, setup
        self._jobs = jobs
        self._name_of = name_of
        self._lost = lost or self._lives_on
        self._workers: list[_Worker[Task]] = []
        self._waiting: list[Task] = []
        self._deaths: Counter[Task] = Counter()

    def __enter__(self) -> TaskProcesses[Task, Answer]:
        return self

    def __exit__(self, *error: object) -> None:
        """End every process."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(LEAVE_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join(LEAVE_S)
        self._workers.clear()

    @property
    def tasks(self) -> list[Task]:
        """Tasks that have been given and have not come back."""
        return [*(worker.task for worker in self._workers if worker.task is not None), *self._waiting]

    @property
    def num_busy(self) -> int:
        """Number of `tasks`."""
        return len(self.tasks)

    @property
    def has_room(self) -> bool:
        """True if another task would begin at once."""
        return self.num_busy < self._jobs

    def next_pid(self) -> int:
        """Id of the process that does the next task, while there is room; one is started where none is idle."""
        return self._idle().process.pid or 0

    def give(self, task: Task) -> None:
        """Let a task be done; only while there is room. Tasks are hashable and unlike one another."""
        worker = self._idle()
        worker.task, worker.seen = task, time.monotonic()
        with contextlib.suppress(OSError):  # it has died since: `wait` finds that out
            worker.connection.send(task)

    def wait(self) -> Sequence[Answer]:
        """Wait a moment for tasks that have been done.

        Raises:
          TasksFailed: one cannot be done, or its processes end again and again.
        """
        while self._waiting and len(self._workers) < self._jobs:
            self.give(self._waiting.pop())
        busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
        answers: list[Answer] = []
        for ready in wait(list(busy), timeout=WAIT_S):
            assert isinstance(ready, Connection)
            worker = busy[ready]
            try:
                answer = ready.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            worker.seen = time.monotonic()
            if isinstance(answer, TaskRefused):
                raise TasksFailed(answer.sentence)
            if not isinstance(answer, _Alive):
                worker.task = None
                answers.append(answer)
        for worker in list(self._workers):
            if worker.task is not None and time.monotonic() - worker.seen > MAX_SILENCE_S:
                self._bury(worker, f"no sign of life for {MAX_SILENCE_S:.0f} s")
        return answers

    def _idle(self) -> _Worker[Task]:
        return next((worker for worker in self._workers if worker.task is None), None) or self._start()

    def _start(self) -> _Worker[Task]:
        try:
            process, ours = self._process(METHOD)
        except (OSError, EOFError) as error:
            logger.warning("no process could be forked (%r): it starts by itself", error)
            process, ours = self._process("spawn")
        worker = _Worker[Task](process, ours, None, time.monotonic())
        self._workers.append(worker)
        return worker

    def _process(self, method: str) -> tuple[multiprocessing.process.BaseProcess, Connection]:
        context = multiprocessing.get_context(method)
        context.set_forkserver_preload([__name__, self._make.__module__])
        ours, theirs = context.Pipe()
        with theirs:
            arguments = (theirs, self._make, self._setup, dict(os.environ))
            process = context.Process(target=_serve, args=arguments, daemon=True)  # type: ignore[attr-defined]
            process.start()
        return process, ours

    def _bury(self, worker: _Worker[Task], how: str = "") -> None:
        """End a process that is of no use, and take its task back. how: empty where it has ended by itself."""
        self._workers.remove(worker)
        worker.connection.close()
        if not how:
            worker.process.join(LEAVE_S)
        worker.process.kill()
        worker.process.join(LEAVE_S)
        assert worker.task is not None
        if self._lost(worker.task, worker.process.pid or 0, how or ending(worker.process.exitcode or 0)):
            self._waiting.append(worker.task)

    def _lives_on(self, task: Task, pid: int, how: str) -> bool:
        self._deaths[task] += 1
        if self._deaths[task] >= MAX_LIVES:
            name = self._name_of(task)
            raise TasksFailed(f"{MAX_LIVES} processes that did {name} ended without a result, the last with {how}.")
        return True


def _serve(connection: Connection, make: Make, setup: object, environment: Mapping[str, str]) -> None:
    """Do tasks until the other end closes. environment: of the parent now; that of the server may be older."""
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare_process()
    sign = _signs(connection)
    try:
        does: Callable[[Any, SignOfLife], Any] | None = None
        while True:
            task = connection.recv()
            does = does or make(setup)
            connection.send(does(task, sign))
    except (LeagueError, EnvError) as error:
        connection.send(TaskRefused(str(error)))
    except (EOFError, OSError):
        return


def _signs(connection: Connection) -> SignOfLife:
    """A function that tells the parent now and then that the task is being done."""
    due = time.monotonic() + SIGN_EVERY_S

    def sign() -> bool:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + SIGN_EVERY_S
            connection.send(_Alive())
        return True

    return sign


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
