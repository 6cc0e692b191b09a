"""Processes that play batches: started, watched, and ended by the tournament."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from league.errors import LeagueError
from league.judge.tournaments.batches import BatchJob, BatchOutcome, Field
from league.judge.tournaments.worker import Failure, serve
from league.processes.task_limits import MAX_LIVES, MAX_SILENCE_S, WAIT_S

LEAVE_S = 2.0


class PlayersFailed(LeagueError):  # noqa: N818
    """Processes that play games cannot do it."""


@dataclass
class _Worker:
    """One process. job: that it plays, None when idle; seen: when it last showed a sign of life."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    job: BatchJob | None
    seen: float


class PlayInProcesses:
    """Plays batches in several processes of one torch thread each.

    A process that dies or hangs is replaced and its batch begins again: a batch is recorded only once it is whole. It
    shows a sign of life before every turn of a game.

    Args:
      jobs: processes, at least 1.
    """

    def __init__(self, field: Field, *, jobs: int) -> None:
        self._field = field
        self._jobs = jobs
        self._workers: list[_Worker] = []
        self._lost: list[BatchJob] = []
        self._deaths: dict[BatchJob, int] = {}

    def __enter__(self) -> PlayInProcesses:
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
    def num_busy(self) -> int:
        """See `BatchPlayers`."""
        return sum(worker.job is not None for worker in self._workers) + len(self._lost)

    @property
    def has_room(self) -> bool:
        """See `BatchPlayers`."""
        return self.num_busy < self._jobs

    def give(self, job: BatchJob) -> None:
        """See `BatchPlayers`. A process is started where none is idle."""
        idle = next((worker for worker in self._workers if worker.job is None), None)
        worker = idle or self._start()
        worker.job, worker.seen = job, time.monotonic()
        with contextlib.suppress(OSError):  # it has died since: `wait` finds that out
            worker.connection.send(job)

    def wait(self) -> Sequence[BatchOutcome]:
        """See `BatchPlayers`."""
        while self._lost and len(self._workers) < self._jobs:
            self.give(self._lost.pop())
        busy = {worker.connection: worker for worker in self._workers if worker.job is not None}
        outcomes = []
        for ready in wait(list(busy), timeout=WAIT_S):
            assert isinstance(ready, Connection)
            worker = busy[ready]
            try:
                answer = ready.recv()
            except (EOFError, OSError):
                self._bury(worker, "died")
                continue
            worker.seen = time.monotonic()
            if isinstance(answer, Failure):
                raise PlayersFailed(answer.sentence)
            if isinstance(answer, BatchOutcome):
                worker.job = None
                outcomes.append(answer)
        for worker in list(self._workers):
            if worker.job is not None and time.monotonic() - worker.seen > MAX_SILENCE_S:
                self._bury(worker, f"showed no sign of life for {MAX_SILENCE_S:.0f} s")
        return outcomes

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self._field), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours, None, time.monotonic())
        self._workers.append(worker)
        return worker

    def _bury(self, worker: _Worker, how: str) -> None:
        """End a process that is of no use, and take its batch back."""
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.kill()
        worker.process.join(LEAVE_S)
        assert worker.job is not None
        self._deaths[worker.job] = self._deaths.get(worker.job, 0) + 1
        if self._deaths[worker.job] >= MAX_LIVES:
            names = ", ".join(self._field.contenders[place].name for place in worker.job.key.lineup)
            raise PlayersFailed(
                f"{MAX_LIVES} processes that played {names} ended without a result: the last one {how}."
            )
        self._lost.append(worker.job)
