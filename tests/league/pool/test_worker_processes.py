"""The worker processes of a pool: one that dies is replaced, unless they do so again and again."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from league.pool.service import worker_processes
from league.pool.service.client import PoolServiceError
from league.pool.service.worker_processes import MAX_DEATHS, WorkerProcesses

SLEEPING = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""
FAILING = [sys.executable, "-c", "raise SystemExit(3)"]


def pids(workers: WorkerProcesses) -> list[int]:
    return [process.pid for process in workers._processes]


def wait_for_deaths(workers: WorkerProcesses, number: int) -> None:
    until = time.monotonic() + 20.0
    while sum(process.poll() is not None for process in workers._processes) < number:
        assert time.monotonic() < until, "nobody died"
        time.sleep(0.01)


def test_a_dead_process_is_replaced_and_the_others_stay() -> None:
    said: list[str] = []
    with WorkerProcesses(SLEEPING, count=2, say=said.append) as workers:
        first, second = pids(workers)
        workers.look(0)
        assert pids(workers) == [first, second] and not said
        os.kill(second, signal.SIGKILL)
        wait_for_deaths(workers, 1)
        workers.look(0)
        assert pids(workers)[0] == first and pids(workers)[1] != second
        assert said == ["A worker process has ended (SIGKILL); another takes its place."]
        processes = list(workers._processes)
    assert [process.returncode for process in processes] == [-signal.SIGTERM] * 2


def test_processes_that_die_again_and_again_are_an_error_unless_batches_are_counted_meanwhile() -> None:
    with WorkerProcesses(FAILING, count=1, say=lambda _: None) as workers:
        for finished in range(2 * MAX_DEATHS):
            wait_for_deaths(workers, 1)
            workers.look(finished)
        for _ in range(MAX_DEATHS - 1):
            wait_for_deaths(workers, 1)
            workers.look(finished)
        wait_for_deaths(workers, 1)
        with pytest.raises(PoolServiceError, match=r"again and again, the last with exit code 3"):
            workers.look(finished)


def test_a_process_that_does_not_leave_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "END_S", 0.3)
    ready = tmp_path / "ready"
    with WorkerProcesses([sys.executable, "-c", STUBBORN, str(ready)], count=1, say=lambda _: None) as workers:
        (process,) = workers._processes
        until = time.monotonic() + 20.0
        while not ready.exists():
            assert time.monotonic() < until, "it did not start"
            time.sleep(0.01)
    assert process.returncode == -signal.SIGKILL
