"""Workers as child processes of the learner: starts them, calls them, and kills them without leftovers.

A worker group is the transport between an updater and its workers. This one starts
`python -m league.agents.learner.workers.worker_process` on this machine; other runtimes provide their own.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
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

from league.agents.learner.errors import StageDiedError, StageHungError
from league.agents.learner.workers.worker import Answer, Request, WorkerSetup
from league.envs.workers.child_endings import wait_for_killed

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

    def kill(self) -> None:
        """End every worker at once; may be called twice."""
        ...


WorkerGroupLauncher = Callable[[Sequence[WorkerSetup]], WorkerGroup]
"""Starts the workers of a group, one for each setup, and returns without waiting for them to be ready. May replace
`device` and `rendezvous` in the setups."""


class ProcessWorkerGroup:
    """Child processes on this machine."""

    def __init__(self, setups: Sequence[WorkerSetup]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="learner-group-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        self._lifelines: list[socket.socket] = []
        self._threads = concurrent.futures.ThreadPoolExecutor(len(setups), thread_name_prefix="learner-worker group")
        rendezvous = f"file://{self._folder}/rendezvous"
        try:
            for setup in setups:
                self._start(dataclasses.replace(setup, rendezvous=setup.rendezvous or rendezvous))
        except BaseException:
            self.kill()
            raise

    def call(self, requests: Sequence[Request | None], *, timeout_s: float) -> list[Answer]:
        """As in the protocol."""
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

    def kill(self) -> None:
        """As in the protocol."""
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
        ours, theirs = socket.socketpair()
        # A computing worker does not read requests; this second pipe always tells it that its parent is gone.
        lifeline, watched = socket.socketpair()
        self._lifelines.append(lifeline)
        self._connections.append(Connection(ours.detach()))
        with theirs, watched:
            command = [
                sys.executable,
                "-m",
                "league.agents.learner.workers.worker_process",
                str(theirs.fileno()),
                str(watched.fileno()),
            ]
            self._processes.append(
                subprocess.Popen(
                    command,
                    pass_fds=(theirs.fileno(), watched.fileno()),
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    # The learner alone handles an interrupt at the terminal.
                    start_new_session=True,
                )
            )
        self._connections[-1].send(setup)

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
