"""Hosts as Ray actors: what goes in comes out, and every loss is a report, never a hang and never a traceback."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from league.agents.nets.config import NetworkConfig
from league.config.run_config import RuntimeConfig
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig, EnvError
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import (
    CheckpointTaken,
    HostLost,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    PlayerInstalled,
    PlayLease,
    Report,
    ResetDone,
    ResetPlayer,
    SnapshotTaken,
    TakeCheckpoint,
    TakeSnapshot,
)
from league.hosts.setup import HostSetup
from league.store.lock import start_ticks
from tests.league.hosts.host_cases import lease_of, paired, setup_of, weights_of

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

DEADLINE_S = 60.0
SETTINGS = RuntimeConfig(kind="ray", actor_hosts=1, learner_hosts=1)


PLAYERS = ("main-0", "own-0")
"""One by the settings of the run, one by its own."""


def own_setup(setup: HostSetup) -> HostSetup:
    """Another network, loss and batch."""
    learner = dataclasses.replace(setup.learner, algorithm="ppo", batch_rows=4, unroll_length=3)
    network = NetworkConfig(hidden=(5, 5), core="lstm", core_size=3)
    return dataclasses.replace(setup, learner=learner, network=network, chunk_rows=4)


class Watched:
    """A runtime and everything that it has reported."""

    def __init__(self, runtime: RayRuntime) -> None:
        self.runtime = runtime
        self.reports: list[Report] = []
        self.budget_fraction = 0.0

    def until(self, condition: Callable[[Report], bool]) -> Report:
        """Poll until a report fits, which is returned; reports before the last call do not count."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            new = self.runtime.poll(0.2, budget_fraction=self.budget_fraction)
            self.reports.extend(new)
            for report in new:
                if condition(report):
                    return report
        raise AssertionError(f"it did not come within {DEADLINE_S:g} s; what came: {self.reports}")

    def until_all(self, *wanted: Report) -> None:
        """Poll until each of these was reported."""
        left = list(wanted)

        def note(report: Report) -> bool:
            if report in left:
                left.remove(report)
            return not left

        self.until(note)

    def pid(self, kind: str) -> int:
        """Of a host that is up or coming up: leases may be played before the runtime has heard of its start."""
        end = time.monotonic() + DEADLINE_S
        while not (pids := [worker.pid for worker in self.runtime.workers() if worker.kind == kind]):
            assert time.monotonic() < end, f"no {kind} came up within {DEADLINE_S:g} s; what came: {self.reports}"
            self.reports.extend(self.runtime.poll(0.2, budget_fraction=self.budget_fraction))
        return pids[0]


def watched(cluster: Cluster, env: EnvConfig | None = None) -> Watched:
    setup = setup_of() if env is None else setup_of(env)
    setup = dataclasses.replace(setup, players={"own": own_setup(setup)})
    runtime = Watched(RayRuntime(setup, SETTINGS, players=PLAYERS, cluster=cluster))
    runtime.runtime.start()
    runtime.until_all(HostStarted("actor-0", "actor_host"), HostStarted("learner-0", "learner_host", PLAYERS))
    runtime.runtime.submit(InstallPlayer("main-0"))
    runtime.until_all(PlayerInstalled("main-0"))
    return runtime


@pytest.fixture(scope="module")
def runtime(ray_cluster: Cluster) -> Iterator[Watched]:
    """Both hosts up and the player installed; every test leaves it so."""
    made = watched(ray_cluster)
    yield made
    pids = [worker.pid for worker in made.runtime.workers()]
    made.runtime.close()
    made.runtime.close()
    assert made.runtime.workers() == ()
    end = time.monotonic() + DEADLINE_S
    while any(start_ticks(pid) for pid in pids):
        assert time.monotonic() < end, "a host outlived its runtime"
        time.sleep(0.02)


def test_a_lease_comes_back_with_its_outcomes_and_the_learner_has_learnt(runtime: Watched) -> None:
    frozen = {"main-0-s0": weights_of(setup_of(), seed=9)}
    lease = lease_of(*paired("main-0", "main-0-s0"), lease_id=11, steps=60)
    runtime.runtime.submit(PlayLease(lease, frozen=frozen))
    done = runtime.until(lambda report: isinstance(report, LeaseDone))
    assert isinstance(done, LeaseDone)
    answer = done.answer
    assert (done.host, answer.lease_id, answer.token, answer.env_steps) == ("actor-0", 11, 7, 60 * 6)
    assert sum(outcome.games for outcome in answer.outcomes) > 20
    assert {outcome.policies for outcome in answer.outcomes} == {("main-0", "main-0-s0"), ("main-0-s0", "main-0")}
    progress = runtime.until(lambda report: isinstance(report, LearnerProgress) and report.update is not None)
    assert isinstance(progress, LearnerProgress)
    assert progress.progress.version > 0
    assert progress.progress.trained_steps > 0


def test_learners_use_the_newest_budget_fraction_of_a_poll(runtime: Watched) -> None:
    """The Ray half of the way from the daemon to the schedules."""
    wanted = setup_of().learner.learning_rate_at(0.5)

    def uses_it(report: Report) -> bool:
        found = isinstance(report, LearnerProgress) and report.update is not None
        return found and report.update.learning_rate == wanted

    runtime.budget_fraction = 0.5
    runtime.until(lambda report: isinstance(report, LearnerProgress))
    runtime.until(lambda report: isinstance(report, LearnerProgress))  # asked with the new fraction at the latest
    runtime.runtime.submit(PlayLease(lease_of(lease_id=12, steps=60), frozen={}))
    runtime.until(uses_it)


def test_a_lease_whose_player_is_not_held_is_lost_and_its_host_is_sound(runtime: Watched) -> None:
    pid = runtime.pid("actor_host")
    table = Assignment(("own-0", "own-0"), (True, True), 1.0)
    runtime.runtime.submit(PlayLease(lease_of(table, lease_id=13, home="own-0"), frozen={}))
    lost = runtime.until(lambda report: isinstance(report, LeaseLost | HostLost))
    assert isinstance(lost, LeaseLost)
    assert (lost.lease_id, "holds the player no more" in lost.reason) == (13, True)
    assert runtime.pid("actor_host") == pid


def test_snapshot_reset_and_checkpoint_are_answered(runtime: Watched) -> None:
    runtime.runtime.submit(TakeSnapshot(5, "main-0"))
    taken = runtime.until(lambda report: isinstance(report, SnapshotTaken))
    assert isinstance(taken, SnapshotTaken)
    assert (taken.directive_id, taken.player) == (5, "main-0")
    other = weights_of(setup_of(), seed=77)
    runtime.runtime.submit(ResetPlayer(6, "main-0", other))
    runtime.until_all(ResetDone(6))
    runtime.runtime.submit(TakeCheckpoint("main-0"))
    checkpoint = runtime.until(lambda report: isinstance(report, CheckpointTaken))
    assert isinstance(checkpoint, CheckpointTaken)
    assert checkpoint.progress.version > taken.weights.version, "rows of the lease may still have been learnt from"
    runtime.runtime.submit(TakeSnapshot(7, "main-0"))
    after = runtime.until(lambda report: isinstance(report, SnapshotTaken))
    assert isinstance(after, SnapshotTaken)
    assert after.weights.digest() == other.digest() != taken.weights.digest()


def test_a_killed_actor_host_is_reported_and_replaced(runtime: Watched) -> None:
    pid = runtime.pid("actor_host")
    runtime.runtime.submit(PlayLease(lease_of(lease_id=21, steps=1_000_000), frozen={}))
    os.kill(pid, signal.SIGKILL)
    lost = runtime.until(lambda report: isinstance(report, HostLost))
    assert isinstance(lost, HostLost)
    assert (lost.host, lost.kind, lost.players) == ("actor-0", "actor_host", ())
    runtime.until_all(HostStarted("actor-0", "actor_host"))
    assert runtime.pid("actor_host") != pid
    runtime.runtime.submit(PlayLease(lease_of(lease_id=22, steps=20), frozen={}))
    done = runtime.until(lambda report: isinstance(report, LeaseDone))
    assert isinstance(done, LeaseDone)
    assert done.answer.lease_id == 22


def test_a_host_that_is_added_works_and_ends_without_a_report_of_loss(runtime: Watched) -> None:
    name = runtime.runtime.add_actor_host()
    runtime.until(lambda report: report == HostStarted(name, "actor_host"))
    pid = next(worker.pid for worker in runtime.runtime.workers() if worker.name == name)
    runtime.runtime.remove_actor_host(name)
    deadline = time.monotonic() + DEADLINE_S
    while start_ticks(pid) and time.monotonic() < deadline:
        runtime.reports.extend(runtime.runtime.poll(0.1, budget_fraction=0.0))
    assert not start_ticks(pid)
    assert not [report for report in runtime.reports if isinstance(report, HostLost) and report.host == name]
    assert name not in [worker.name for worker in runtime.runtime.workers()]


def test_players_of_different_settings_meet_and_each_continues_from_its_own_state(runtime: Watched) -> None:
    runtime.runtime.submit(InstallPlayer("own-0"))
    runtime.until_all(PlayerInstalled("own-0"))
    frozen = {"own-0-s0": weights_of(own_setup(setup_of()), seed=9), "main-0-s0": weights_of(setup_of(), seed=9)}
    for number, (home, others) in enumerate(
        {"own-0": ("main-0", "main-0-s0"), "main-0": ("own-0", "own-0-s0")}.items()
    ):
        table = (paired(home, other) for other in others)
        lease = lease_of(*(dataclasses.replace(row, probability=0.25) for pair in table for row in pair), home=home)
        lease = dataclasses.replace(lease, lease_id=41 + number)
        runtime.runtime.submit(PlayLease(lease, frozen=frozen))
        done = runtime.until(lambda report: isinstance(report, LeaseDone))
        assert isinstance(done, LeaseDone)
        assert {name for outcome in done.answer.outcomes for name in outcome.policies} == {home, *others}
    runtime.runtime.submit(TakeCheckpoint("own-0"))
    checkpoint = runtime.until(lambda report: isinstance(report, CheckpointTaken))
    assert isinstance(checkpoint, CheckpointTaken) and checkpoint.progress.trained_steps > 0
    runtime.runtime.submit(InstallPlayer("own-0", saved=checkpoint.saved))
    runtime.until_all(PlayerInstalled("own-0"))
    runtime.runtime.submit(TakeSnapshot(9, "own-0"))
    taken = runtime.until(lambda report: isinstance(report, SnapshotTaken))
    assert isinstance(taken, SnapshotTaken)
    assert taken.weights.version >= checkpoint.progress.version
    assert taken.weights.layout == frozen["own-0-s0"].layout != frozen["main-0-s0"].layout


def test_a_killed_learner_host_loses_the_lease_and_continues_from_its_checkpoint(runtime: Watched) -> None:
    runtime.runtime.submit(TakeCheckpoint("main-0"))
    checkpoint = runtime.until(lambda report: isinstance(report, CheckpointTaken))
    assert isinstance(checkpoint, CheckpointTaken)
    actor = runtime.pid("actor_host")
    runtime.runtime.submit(PlayLease(lease_of(lease_id=31, steps=1_000_000), frozen={}))
    os.kill(runtime.pid("learner_host"), signal.SIGKILL)
    seen: set[type] = set()

    def both(report: Report) -> bool:
        if isinstance(report, LeaseLost | HostLost):
            seen.add(type(report))
        return seen == {LeaseLost, HostLost}

    runtime.until(both)
    assert runtime.pid("actor_host") == actor
    runtime.until_all(HostStarted("learner-0", "learner_host", PLAYERS))
    runtime.runtime.submit(InstallPlayer("main-0", saved=checkpoint.saved))
    runtime.until_all(PlayerInstalled("main-0"))
    runtime.runtime.submit(TakeSnapshot(8, "main-0"))
    taken = runtime.until(lambda report: isinstance(report, SnapshotTaken))
    assert isinstance(taken, SnapshotTaken)
    assert taken.weights.version == checkpoint.progress.version
    runtime.runtime.submit(PlayLease(lease_of(lease_id=32, steps=20), frozen={}))
    runtime.until(lambda report: isinstance(report, LeaseDone))


def test_a_game_that_raises_in_a_host_is_one_sentence(ray_cluster: Cluster) -> None:
    made = watched(ray_cluster, EnvConfig("tests.league.bad_envs:breaking", {"how": "raise"}))
    try:
        made.runtime.submit(PlayLease(lease_of(), frozen={}))
        with pytest.raises(EnvError) as raised:
            made.until(lambda report: isinstance(report, LeaseDone))
        text = str(raised.value)
        assert "step raised RuntimeError: the dice fell under the table" in text
        assert "\n" not in text
        assert "Traceback" not in text
    finally:
        made.runtime.close()
