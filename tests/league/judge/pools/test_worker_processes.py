"""The worker processes of a pool: one that dies is replaced, unless they do so again and again."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from league.judge.pools.core.state import BATCHES, DRAWS, LOSSES, WINS, to_plain
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import read_pool, verified_pool
from league.judge.pools.service import run_command, worker_processes
from league.judge.pools.service.client import PoolServiceError
from league.judge.pools.service.worker_processes import MAX_DEATHS, WorkerProcesses
from tests.league.commands import league, spawn, wait_until

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
    died: list[tuple[int, str]] = []
    with WorkerProcesses(SLEEPING, count=2, say=said.append, died=lambda pid, why: died.append((pid, why))) as workers:
        first, second = pids(workers)
        workers.look(0)
        assert pids(workers) == [first, second] and not said
        os.kill(second, signal.SIGKILL)
        wait_for_deaths(workers, 1)
        workers.look(0)
        assert pids(workers)[0] == first and pids(workers)[1] != second
        assert said == ["A worker process has ended (SIGKILL); another takes its place."]
        assert died == [(second, "SIGKILL")]
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


def test_a_process_that_cannot_be_started_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(PoolServiceError, match="cannot be started: No such file"),
        WorkerProcesses([str(tmp_path / "missing")], count=1, say=lambda _: None),
    ):
        pass


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


def test_a_run_whose_worker_is_killed_plays_on_and_counts_every_batch_once(pool_folder: PoolFolder) -> None:
    first: set[str] = set()

    def workers() -> set[str]:
        return {lease.worker for lease in read_pool(pool_folder).leases.values()}

    def both_play() -> bool:
        first.update(workers())
        return len(first) == 2

    run = spawn("pool", "run", pool_folder.path, "--jobs", 2)
    try:
        wait_until(both_play, "a batch of each worker")
        os.kill(int(min(first).rpartition(":")[2]), signal.SIGKILL)
        wait_until(lambda: bool(workers() - first), "a batch of the new worker")
        before = read_pool(pool_folder).finished
        wait_until(lambda: read_pool(pool_folder).finished > before, "another counted batch")
        run.terminate()
        _, said = run.communicate(timeout=60.0)
    finally:
        run.kill()
        run.wait(20.0)
    assert run.returncode == 0 and said.count("A worker process has ended (SIGKILL); another takes its place.") == 1
    state = read_pool(pool_folder)
    assert state.finished + state.expired + state.failed + len(state.leases) == state.next_lease_id - 1
    assert state.failed == 0 and sum(state.totals.values[:, BATCHES]) == state.finished
    assert sum(state.games.values) == 2 * sum(state.totals.values[:, [WINS, DRAWS, LOSSES]].sum(axis=1))
    assert to_plain(verified_pool(pool_folder)) == to_plain(state)


def test_a_run_whose_workers_all_die_at_once_ends_with_a_sentence(
    pool_folder: PoolFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))
    monkeypatch.setattr(run_command, "TEND_S", 0.05)
    ran = league("pool", "run", pool_folder.path, "--jobs", 2, "--for", 60)
    assert ran.code == 2 and "Traceback" not in ran.err
    assert ran.err.count("has ended (exit code 3); another takes its place") == 2 * MAX_DEATHS
    assert "league: worker processes end again and again, the last with exit code 3" in ran.err
