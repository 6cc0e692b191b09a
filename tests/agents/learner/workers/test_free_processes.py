"""Real processes of a free group: who is killed loses nothing of the others, and comes back with what they know."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import numpy as np
import pytest
import torch

from league.agents.learner.build import build_updater
from league.agents.learner.step.updater import UpdateResult
from league.agents.learner.workers.forked_workers import SERVER
from league.agents.learner.workers.free_group import FreeGroup
from league.agents.learner.workers.worker import Describe, Description, WorkerSetup
from league.agents.learner.workers.worker_group import ProcessWorkerGroup
from tests.agents.learner.workers.test_free_group import INPUTS, PLAN, batch, config_of, finish

pytestmark = pytest.mark.xdist_group("forked workers")  # they share the server


def started(mode: object) -> FreeGroup:
    updater, _ = build_updater(PLAN, config_of(mode), dtype=torch.float32)
    assert isinstance(updater, FreeGroup) and isinstance(updater._workers, ProcessWorkerGroup)
    return updater


def kill(group: FreeGroup, rank: int) -> None:
    assert isinstance(group._workers, ProcessWorkerGroup)
    group._workers.processes[rank].kill()


@contextmanager
def held(group: FreeGroup, rank: int) -> Iterator[None]:
    """Context in which a member that has just been started again comes no further."""
    assert isinstance(group._workers, ProcessWorkerGroup)
    process = group._workers.processes[rank].pid
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def learn_until(group: FreeGroup, met: Callable[[UpdateResult], bool]) -> list[UpdateResult]:
    """Results of updates up to the first that meets a condition."""
    results = []
    for seed in itertools.count():
        results.append(group.update([batch(seed % 8)], INPUTS))
        if met(results[-1]):
            return results
    raise AssertionError


def wait_for(group: FreeGroup, rank: int) -> None:
    """Wait until a member is idle."""
    while group._members[rank].doing != "idle":
        group._look(timeout_s=0.2)


def test_a_killed_replica_and_a_killed_shard_stop_nobody_and_come_back_with_the_newest_weights() -> None:
    group = started({"kind": "parameter_server", "shards": 1})
    replicas, shard = (0, 1), 2
    try:
        initial = group.weights()
        learn_until(group, lambda result: result.optimizer_steps > 0)
        kept = float(group.save()["optimizer_number.step"])

        kill(group, 0)
        lost = learn_until(group, lambda result: result.group.lost != ())[-1].group.lost
        assert len(lost) == 1 and lost[0].startswith("replica 0 was lost and its batch with it: worker 0 ended")
        with held(group, 0):
            for _ in range(5):  # the other learns while the lost one starts
                assert learn_until(group, lambda result: result.group.batches > 0)[-1].group.lost == ()
            assert group._members[0].doing in ("starting", "loading")
        wait_for(group, 0)
        assert learn_until(group, lambda result: result.group.batches > 0)[-1].group.lags[0] <= 2

        finish(group)
        newest = group.weights()
        kill(group, shard)
        (sentence,) = learn_until(group, lambda result: result.group.lost != ())[-1].group.lost
        assert sentence.startswith(
            "shard 0 was lost and is rebuilt from the newest weights, its moments from the last checkpoint: worker 2"
        )
        wait_for(group, shard)
        np.testing.assert_array_equal(group.weights(), newest)
        assert np.abs(newest - initial).max() > 1e-3
        assert float(group.save()["optimizer_number.step"]) == kept
        learn_until(group, lambda result: result.optimizer_steps > 0)
        finish(group)
        assert float(group.save()["optimizer_number.step"]) > kept
        assert [group._members[rank].failures for rank in replicas] == [0, 0]
        processes = list(group._workers.processes)  # type: ignore[union-attr]
    finally:
        group.close()
    assert all(process.poll() is not None for process in processes) and not group._folder.exists()


def test_a_replica_of_hogwild_that_is_killed_leaves_finite_weights_and_takes_them_up_again() -> None:
    group = started("hogwild")
    try:
        learn_until(group, lambda result: result.optimizer_steps > 0)
        kill(group, 1)
        learn_until(group, lambda result: result.group.lost != ())
        with held(group, 1):
            learn_until(group, lambda result: result.group.batches > 0)
            assert group._members[1].doing in ("starting", "loading")
        wait_for(group, 1)
        finish(group)
        before, steps = group.weights(), float(group.save()["optimizer_number.step"])
        assert np.isfinite(before).all()
        group.update([batch(0)], INPUTS)
        group.update([batch(1)], INPUTS)
        finish(group)
        assert float(group.save()["optimizer_number.step"]) in (steps + 1.0, steps + 2.0)
        assert np.isfinite(group.weights()).all() and np.abs(group.weights() - before).max() < 0.1
    finally:
        group.close()


def test_a_replica_whose_learner_is_gone_ends_and_removes_the_memory_that_they_shared(tmp_path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    setup = WorkerSetup(PLAN, config_of("hogwild"), 0, "float32", "cpu", (), "", os.fspath(folder))
    ours, theirs = socket.socketpair()
    lifeline, watched = socket.socketpair()
    descriptors = (theirs.fileno(), watched.fileno())
    process = SERVER.fork(descriptors, os.environ, stages=False)
    theirs.close()
    watched.close()
    with Connection(ours.detach()) as connection:
        connection.send(setup)
        connection.send(Describe())
        assert isinstance(connection.recv(), Description)
        assert (folder / "weights").exists()
        lifeline.close()
        assert process.wait(timeout=60.0) == 1
    assert not folder.exists()
