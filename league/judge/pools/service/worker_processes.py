"""The worker processes of one pool on this machine: one that dies is replaced, and all end together."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Self

from league.envs.workers.child_endings import ending
from league.judge.pools.service.client import PoolServiceError
from league.processes.child_process import end_process

END_S = 10.0
"""Patience with worker processes that are to end."""
MAX_DEATHS = 3
"""Deaths for each place without a counted batch in between, up to which a dead process is replaced."""


class WorkerProcesses:
    """Processes that play; leaving the context ends them.

    Args:
      command: of one process. count: how many. say: tells the user one sentence.
      died: called with the pid of a process that has died, and how it ended.
    Raises:
      PoolServiceError: on entering the context, a process cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        count: int,
        say: Callable[[str], object],
        died: Callable[[int, str], object] = lambda pid, why: None,
    ) -> None:
        self._command = list(command)
        self._count = count
        self._say = say
        self._died = died
        self._finished = -1
        self._deaths = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            while len(self._processes) < self._count:
                self._processes.append(self._started())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def look(self, finished: int) -> None:
        """Replace the processes that have died. finished: batches of the pool that were counted so far.

        Raises:
          PoolServiceError: they die again and again, and no batch is counted; or none can be started.
        """
        if finished != self._finished:
            self._finished, self._deaths = finished, 0
        for place, process in enumerate(self._processes):
            code = process.poll()
            if code is None:
                continue
            self._deaths += 1
            self._died(process.pid, ending(code))
            if self._deaths > MAX_DEATHS * self._count:
                raise PoolServiceError(
                    f"worker processes end again and again, the last with {ending(code)}; what they said stands above."
                )
            self._say(f"A worker process has ended ({ending(code)}); another takes its place.")
            self._processes[place] = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:  # no memory, or too many processes
            raise PoolServiceError(f"a worker process cannot be started: {error.strerror}.") from error

    def _end(self) -> None:
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + END_S
        for process in self._processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                end_process(process)
