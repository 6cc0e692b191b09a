"""The runtime in one process: what a task finds and leaves, poll by poll."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from league.agents.learner.errors import NonFiniteError
from league.agents.nets.config import NetworkConfig
from league.envs.protocol import EnvConfig
from league.errors import LearningFailed
from league.hosts.inprocess import InProcessRuntime
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import (
    Arrays,
    CheckpointTaken,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    PlayLease,
    Report,
    ResetDone,
    TakeCheckpoint,
    Task,
)
from league.hosts.setup import HostSetup
from tests.league.hosts.host_cases import lease_of, setup_of


def polled(runtime: InProcessRuntime, kind: type[Report], *, budget_fraction: float) -> Report:
    """The first report of a kind; every poll tells the same fraction."""
    for _ in range(100):
        for report in runtime.poll(1.0, budget_fraction=budget_fraction):
            if isinstance(report, kind):
                return report
    raise AssertionError(f"no {kind.__name__}")


@pytest.mark.parametrize("budget_fraction", [0.0, 0.25, 1.0])
def test_a_lease_learns_under_the_budget_fraction_of_the_poll_that_begins_it(budget_fraction: float) -> None:
    setup = setup_of()
    runtime = InProcessRuntime(setup, players=("main-0",), deadline_s=60.0)
    runtime.start()
    runtime.submit(InstallPlayer("main-0"))
    runtime.submit(PlayLease(lease_of(steps=60), frozen={}))
    report = polled(runtime, LearnerProgress, budget_fraction=budget_fraction)
    assert isinstance(report, LearnerProgress) and report.update is not None
    assert report.update.learning_rate == setup.learner.learning_rate_at(budget_fraction)
    assert report.update.entropy_cost == setup.learner.entropy_cost_at(budget_fraction)
    runtime.close()


def test_reports_of_a_task_come_together_however_slow_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = InProcessRuntime(setup_of(), players=("main-0",), deadline_s=60.0)
    half_done, resumed = threading.Event(), threading.Event()

    def two_reports(self: InProcessRuntime, task: Task) -> None:
        self._reports.append(ResetDone(1))
        half_done.set()
        assert resumed.wait(30.0)
        self._reports.append(ResetDone(2))

    monkeypatch.setattr(InProcessRuntime, "_run", two_reports)
    runtime.submit(TakeCheckpoint("main-0"))
    assert runtime.poll(0.0, budget_fraction=0.0) == []
    assert half_done.wait(30.0)
    assert runtime.poll(0.0, budget_fraction=0.0) == []
    resumed.set()
    reports: list[Report] = []
    while not reports:
        reports = runtime.poll(1.0, budget_fraction=0.0)
    assert reports == [ResetDone(1), ResetDone(2)]
    runtime.close()


@pytest.mark.parametrize("given_up", [True, False])
def test_games_in_the_middle_of_a_task_leave_nothing_to_save(monkeypatch: pytest.MonkeyPatch, given_up: bool) -> None:
    runtime = InProcessRuntime(setup_of(), players=("main-0",), deadline_s=60.0)
    runtime.start()
    hangs, released = threading.Event(), threading.Event()

    def hang(self: InProcessRuntime, task: Task) -> None:
        hangs.set()
        released.wait(30.0)

    monkeypatch.setattr(InProcessRuntime, "_run", hang)
    runtime.submit(PlayLease(lease_of(steps=60), frozen={}))
    runtime.submit(TakeCheckpoint("main-0"))
    for _ in range(2):  # the first one tells that the hosts have started
        runtime.poll(0.0, budget_fraction=0.0)
    assert hangs.wait(30.0)
    if given_up:
        runtime.abandon()
    assert runtime.save_hosts() is None
    released.set()
    runtime.close()


def test_a_learner_that_cannot_learn_on_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = InProcessRuntime(setup_of(), players=("main-0",), deadline_s=60.0)
    runtime.start()
    runtime.submit(InstallPlayer("main-0"))

    def fail(self: SyncLearnerHost, player: str, chunk: bytes) -> None:
        raise NonFiniteError("six updates in a row were not finite")

    monkeypatch.setattr(SyncLearnerHost, "push", fail)
    runtime.submit(PlayLease(lease_of(steps=60), frozen={}))
    with pytest.raises(LearningFailed, match="main-0 cannot learn on: six updates in a row"):
        polled(runtime, LeaseDone, budget_fraction=0.0)
    runtime.close()


def learnt(setup: HostSetup, *, stop: bool = False) -> Arrays:
    """The restart state of the player after two leases; with `stop` in two runtimes, the second continues the first."""
    runtime = InProcessRuntime(setup, players=("main-0",), deadline_s=60.0)
    runtime.start()
    runtime.submit(InstallPlayer("main-0"))
    for lease_id in (1, 2):
        if stop and lease_id == 2:
            state, saved = runtime.save_hosts(), checkpoint_of(runtime)
            runtime.close()
            runtime = InProcessRuntime(setup, players=("main-0",), deadline_s=60.0)
            runtime.start()
            runtime.submit(InstallPlayer("main-0", saved=saved))
            assert state is not None
            runtime.load_hosts(state, {})
        runtime.submit(PlayLease(lease_of(lease_id=lease_id, steps=21), frozen={}))
        polled(runtime, LeaseDone, budget_fraction=0.0)
    found = checkpoint_of(runtime)
    runtime.close()
    return found


def checkpoint_of(runtime: InProcessRuntime) -> Arrays:
    runtime.submit(TakeCheckpoint("main-0"))
    found = polled(runtime, CheckpointTaken, budget_fraction=0.0)
    assert isinstance(found, CheckpointTaken)
    return found.saved


def test_an_inference_host_changes_nothing_that_is_learnt_also_over_a_stop() -> None:
    setup = setup_of(EnvConfig("probe_turns", {"episode_length": [5, 3, 8], "truncate": True}))
    setup = replace(setup, network=NetworkConfig(hidden=(8,), core="lstm", core_size=4))
    central = replace(setup, inference="tests")
    local = learnt(setup)
    for found in (learnt(central), learnt(central, stop=True)):
        assert found.keys() == local.keys()
        assert all(np.array_equal(found[name], local[name]) for name in local)
