"""Workers as child processes of the learner: starts them, calls them, and kills them without leftovers.

A worker group is the transport between an updater and its workers. This one starts processes on this machine, those of
a group in step by a fork where that is possible; other runtimes provide their own.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from league.agents.learner.errors import StageDiedError, StageError, StageHungError
from league.agents.learner.workers.forked_workers import CAN_FORK, SERVER
from league.agents.learner.workers.worker import Answer, Request, WorkerSetup
from league.envs.workers.child_endings import wait_for_killed
from league.envs.workers.forks import ForkedProcess

logger = logging.getLogger(__name__)

SETTLE_S = 0.5
"""Seconds for the peers of a lost worker to fail as well, and for its exit code to arrive."""


class _LostError(StageDiedError):
    """The process has ended, as opposed to a bad answer."""


@dataclasses.dataclass(frozen=True)
class Failed:
    """A worker's answer if it raised: the error and its place."""

    text: str


class WorkerGroup(Protocol):
    """All workers of a group, in the order of their ranks."""

    def call(self, requests: Sequence[Request | None], *, timeout_s: float) -> list[Answer]:
        """Send every worker its request (None: no request) and wait for all answers.

        Raises:
          StageDiedError: a worker ended or raised; StageHungError: one did not answer in time. Kill the worker group
            then.
        """
        ...

    def send(self, rank: int, request: Request) -> None:
        """Give one worker a request without a wait; it must have answered the last one."""
        ...

    def receive(self, *, timeout_s: float) -> list[tuple[int, Answer | StageError]]:
        """Ranks that have answered what was sent to them, waiting for the first; empty if none did in time.

        The answer of a worker that ended or raised is an error. The others are not touched.
        """
        ...

    def restart(self, rank: int) -> None:
        """End one worker, if it still runs, and start another in its place, without waiting for it to be ready."""
        ...

    def kill(self) -> None:
        """End every worker at once; may be called twice."""
        ...


Process = subprocess.Popen[bytes] | ForkedProcess
"""A worker's process."""

WorkerGroupLauncher = Callable[[Sequence[WorkerSetup]], WorkerGroup]
"""Starts the workers of a group, one for each setup, and returns without waiting for them to be ready. May replace
`device` and `rendezvous` in the setups."""


class ProcessWorkerGroup:
    """Child processes on this machine."""

    def __init__(self, setups: Sequence[WorkerSetup]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="learner-group-"))
        self._setups = list(setups)
        self._processes: list[Process] = []
        self._connections: list[Connection] = []
        self._lifelines: list[socket.socket] = []
        self._sent: dict[concurrent.futures.Future[Answer], int] = {}
        self._threads = concurrent.futures.ThreadPoolExecutor(len(setups), thread_name_prefix="learner-worker group")
        try:
            for setup in self._setups:
                self._start(setup)
        except BaseException:
            self.kill()
            raise

    def call(self, requests: Sequence[Request | None], *, timeout_s: float) -> list[Answer]:
        if not self._processes:
            raise StageDiedError("the workers are not running")
        asked = {
            self._threads.submit(self._ask, rank, request): rank
            for rank, request in enumerate(requests)
            if request is not None
        }
        done, open_ = concurrent.futures.wait(asked, timeout=timeout_s, return_when=concurrent.futures.FIRST_EXCEPTION)
        if any(future.exception() is not None for future in done):
            # A lost worker makes its peers fail as well, sometimes sooner: name the lost one.
            done, _ = concurrent.futures.wait(asked, timeout=SETTLE_S)
            errors = [error for future in done if (error := future.exception()) is not None]
            raise next((error for error in errors if isinstance(error, _LostError)), errors[0])
        if open_:
            ranks = ", ".join(str(asked[future]) for future in sorted(open_, key=asked.__getitem__))
            raise StageHungError(f"no answer from worker {ranks} within {timeout_s:g} s")
        answers: list[Answer] = [None] * len(requests)
        for future, rank in asked.items():
            answers[rank] = future.result()
        return answers

    @property
    def processes(self) -> Sequence[Process]:
        """Of the workers, by rank."""
        return self._processes

    def send(self, rank: int, request: Request) -> None:
        self._sent[self._threads.submit(self._ask, rank, request)] = rank

    def receive(self, *, timeout_s: float) -> list[tuple[int, Answer | StageError]]:
        done, _ = concurrent.futures.wait(self._sent, timeout=timeout_s, return_when=concurrent.futures.FIRST_COMPLETED)
        answers: list[tuple[int, Answer | StageError]] = []
        for future in done:
            error = future.exception()
            if error is not None and not isinstance(error, StageError):
                raise error
            answers.append((self._sent.pop(future), future.result() if error is None else error))
        return answers

    def restart(self, rank: int) -> None:
        self._processes[rank].kill()
        wait_for_killed(self._processes[rank])
        _end_traffic(self._connections[rank])
        lost = [future for future, other in self._sent.items() if other == rank]
        concurrent.futures.wait(lost)
        for future in lost:
            del self._sent[future]
        self._connections[rank].close()
        self._lifelines[rank].close()
        started = self._started(self._setups[rank], waits=False)
        self._processes[rank], self._connections[rank], self._lifelines[rank] = started

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            wait_for_killed(process)
        for connection in self._connections:
            _end_traffic(connection)
        self._threads.shutdown(wait=True)  # nothing blocks them any more
        for connection in self._connections:
            connection.close()
        for lifeline in self._lifelines:
            lifeline.close()
        self._processes, self._connections, self._lifelines = [], [], []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, setup: WorkerSetup) -> None:
        process, connection, lifeline = self._started(setup, waits=True)
        self._processes.append(process)
        self._connections.append(connection)
        self._lifelines.append(lifeline)

    def _started(self, setup: WorkerSetup, *, waits: bool) -> tuple[Process, Connection, socket.socket]:
        """A new worker's process, the connection to it, and the pipe that tells it when its parent is gone."""
        ours, theirs = socket.socketpair()
        # A computing worker does not read requests; this second pipe always tells it that its parent is gone.
        lifeline, watched = socket.socketpair()
        connection = Connection(ours.detach())
        with theirs, watched:
            process = _process(setup, (theirs.fileno(), watched.fileno()), waits=waits)
        rendezvous = setup.rendezvous or f"file://{self._folder}/rendezvous"
        connection.send(dataclasses.replace(setup, rendezvous=rendezvous))
        return process, connection, lifeline

    def _ask(self, rank: int, request: Request) -> Answer:
        connection = self._connections[rank]
        try:
            connection.send(request)
            answer: Answer | Failed = connection.recv()
        except (EOFError, OSError) as error:
            raise _LostError(f"worker {rank} ended with exit code {self._exit_code(rank)}") from error
        if isinstance(answer, Failed):
            raise StageDiedError(f"worker {rank} failed: {answer.text}")
        return answer

    def _exit_code(self, rank: int) -> int | str:
        try:
            return self._processes[rank].wait(timeout=SETTLE_S)
        except subprocess.TimeoutExpired:
            return "unknown"


def _process(setup: WorkerSetup, files: tuple[int, int], *, waits: bool) -> Process:
    """The process of a worker, in a session of its own: the learner alone handles an interrupt at the terminal.

    A fork has no GPU: a worker with one starts by itself.

    Args:
      waits: True if the imports of a server that is not there yet may be waited for. While others learn they may not.
    """
    pipeline = setup.config.pipeline
    if CAN_FORK and setup.device == "cpu" and (waits or SERVER.is_running):
        try:
            return SERVER.fork(files, _environment(), stages=pipeline.stages > 1)
        except OSError as error:
            logger.warning("no worker could be forked (%s): it starts by itself", error)
    return subprocess.Popen(
        [sys.executable, "-m", "league.agents.learner.workers.worker_process", *map(str, files)],
        pass_fds=files,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def _end_traffic(connection: Connection) -> None:
    """Let calls on a connection end, also where the process at its other end is killed and not gone."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def _environment() -> dict[str, str]:
    """The learner's environment, so that imports are the same; one thread each, loopback instead of the network."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    environment.setdefault("OMP_NUM_THREADS", "1")
    if sys.platform == "linux":
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return environment
