"""The processes in which a pool plays: one that dies is replaced, unless they do so again and again."""

from __future__ import annotations

import multiprocessing.spawn as spawn_module
import os
import signal
from pathlib import Path

import pytest

from league.judge.pools.core.state import BATCHES, DRAWS, LOSSES, WINS, to_plain
from league.judge.pools.folder import PoolFolder
from league.judge.pools.journaled_pool import read_pool, verified_pool
from league.judge.pools.run import MAX_DEATHS
from league.processes import task_processes
from tests.league.commands import league, spawn, wait_until


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
    monkeypatch.setattr(spawn_module, "_python_exe", bytes(failing))
    monkeypatch.setattr(task_processes, "METHOD", "spawn")  # of a server that is there already none would fail
    ran = league("pool", "run", pool_folder.path, "--jobs", 2, "--for", 60)
    assert ran.code == 2 and "Traceback" not in ran.err
    assert ran.err.count("has ended (exit code 3); another takes its place") == 2 * MAX_DEATHS
    assert "league: worker processes end again and again, the last with exit code 3" in ran.err
