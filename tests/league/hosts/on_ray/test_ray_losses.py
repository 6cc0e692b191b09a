"""Hosts that hang or cannot stay up, on Ray: who is noticed, how soon, and who goes on meanwhile."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from league.config.deadlines import deadlines_of
from league.config.run_config import RuntimeConfig
from league.core.state.records import Lease
from league.envs.protocol import EnvConfig, EnvError
from league.errors import LeagueError
from league.hosts.on_ray import runtime as ray_runtime
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.host_processes import ActorHostProcess
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    InstallPlayer,
    LeaseDone,
    LeaseLost,
    PlayerInstalled,
    PlayLease,
)
from tests.league.hosts.host_cases import lease_of, setup_of
from tests.league.hosts.on_ray.test_ray_runtime import Watched

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

QUICK = deadlines_of(lease_deadline_s=12.0, progress_deadline_s=4.0, start_timeout_s=30.0, stage_timeout_s=10.0)
SLACK_S = 30.0
"""For a busy machine."""


def started(cluster: Cluster, *, actor_hosts: int = 1, env: EnvConfig | None = None, logs: str = "") -> Watched:
    setup = dataclasses.replace(setup_of() if env is None else setup_of(env), deadlines=QUICK, logs=logs)
    settings = RuntimeConfig(kind="ray", actor_hosts=actor_hosts, learner_hosts=1)
    runtime = Watched(RayRuntime(setup, settings, players=("main-0",), cluster=cluster))
    runtime.runtime.start()
    actors = [HostStarted(f"actor-{number}", "actor_host") for number in range(actor_hosts)]
    runtime.until_all(*actors, HostStarted("learner-0", "learner_host", ("main-0",)))
    runtime.runtime.submit(InstallPlayer("main-0"))
    runtime.until_all(PlayerInstalled("main-0"))
    return runtime


def lease_on(host: str, lease_id: int, *, steps: int) -> Lease:
    return dataclasses.replace(lease_of(lease_id=lease_id, steps=steps), host=host)


def test_a_hung_learner_host_is_noticed_and_no_healthy_actor_host_is_ended_for_it(ray_cluster: Cluster) -> None:
    made = started(ray_cluster)
    try:
        actor, learner = made.pid("actor_host"), made.pid("learner_host")
        made.runtime.submit(PlayLease(lease_of(lease_id=41, steps=10_000_000), frozen={}))
        begun = time.monotonic()
        os.kill(learner, signal.SIGSTOP)
        lost = made.until(lambda report: isinstance(report, HostLost))
        assert isinstance(lost, HostLost)
        assert lost.kind == "learner_host"
        assert time.monotonic() - begun < QUICK.noticed_s + SLACK_S
        if not any(isinstance(report, LeaseLost) for report in made.reports):
            made.until(lambda report: isinstance(report, LeaseLost))
        made.until_all(HostStarted("learner-0", "learner_host", ("main-0",)))
        assert made.pid("actor_host") == actor
        assert [r.kind for r in made.reports if isinstance(r, HostLost)] == ["learner_host"]
    finally:
        made.runtime.close()


def test_a_host_that_cannot_stay_up_is_parked_while_the_others_work_and_tried_again(
    ray_cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="league.hosts.on_ray.cluster")
    monkeypatch.setattr(ray_runtime, "MAX_FAILURES", 1)
    monkeypatch.setattr(ray_runtime, "PARK_RETRY_S", 3.0)
    made = started(ray_cluster, actor_hosts=2)
    kept = ActorHostProcess.__subclasses__()
    try:
        for parked_s in (0.0, 3.0):
            made.runtime.submit(PlayLease(lease_on("actor-1", 50, steps=10_000_000), frozen={}))
            os.kill(made.runtime._roster.hosts["actor-1"].pid, signal.SIGKILL)
            lost = made.until(lambda report: isinstance(report, HostLost))
            assert isinstance(lost, HostLost)
            assert (lost.host, lost.parked_s) == ("actor-1", parked_s)
            if not parked_s:
                made.until_all(HostStarted("actor-1", "actor_host"))
        made.runtime.submit(PlayLease(lease_of(lease_id=51, steps=20), frozen={}))
        made.until(lambda report: isinstance(report, LeaseDone) and report.answer.lease_id == 51)
        made.until_all(HostStarted("actor-1", "actor_host"))
        made.runtime.submit(PlayLease(lease_on("actor-1", 52, steps=20), frozen={}))
        made.until(lambda report: isinstance(report, LeaseDone) and report.answer.lease_id == 52)
        assert not any(host.parked for host in made.runtime._roster.hosts.values())
        assert ActorHostProcess.__subclasses__() == kept  # Ray never gives up a class that it has made
        assert "(raylet)" not in capsys.readouterr().out
        assert "Ray: A worker died" in caplog.text
    finally:
        made.runtime.close()


def test_a_traceback_of_a_host_is_in_the_logs_of_the_run(ray_cluster: Cluster, tmp_path: Path) -> None:
    env = EnvConfig("tests.league.bad_envs:breaking", {"how": "raise"})
    made = started(ray_cluster, env=env, logs=str(tmp_path))
    try:
        made.runtime.submit(PlayLease(lease_of(), frozen={}))
        with pytest.raises(EnvError):
            made.until(lambda report: isinstance(report, LeaseDone))
    finally:
        made.runtime.close()
    text = (tmp_path / "actor-0.log").read_text()
    assert "Traceback" in text and "the dice fell under the table" in text
    assert (tmp_path / "learner-0.log").exists()


class NoCluster:
    """A cluster on which nothing runs."""

    folder = None
    is_own = True
    has_head = True

    def check_head(self) -> bool:
        return True


class Handle:
    """A host that notes what it is asked and answers nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        def remote(task: Any) -> tuple[str, int]:
            self.asked.append((name, task.player))
            return (name, len(self.asked))

        return type("Method", (), {"remote": staticmethod(remote)})


def idle_runtime(*, actor_hosts: int = 1, players: tuple[str, ...] = ("main-0",), clock: list[float]) -> RayRuntime:
    setup = dataclasses.replace(setup_of(), deadlines=QUICK)
    settings = RuntimeConfig(kind="ray", actor_hosts=actor_hosts, learner_hosts=1)
    return RayRuntime(setup, settings, players=players, monotonic=lambda: clock[0], cluster=NoCluster())  # type: ignore[arg-type]


def test_installs_take_their_turn_and_the_deadline_of_each_runs_from_its_own() -> None:
    clock = [0.0]
    names = tuple(f"main-{number}" for number in range(5))
    runtime = idle_runtime(players=names, clock=clock)
    host = runtime._roster.hosts["learner-0"]
    host.handle = handle = Handle()
    for name in names:
        runtime.submit(InstallPlayer(name))
    for done, name in enumerate(names, start=1):
        assert handle.asked == [("install", other) for other in names[:done]]
        (call,) = runtime._calls
        assert call.deadline == clock[0] + QUICK.directive_s
        clock[0] += 0.9 * QUICK.directive_s
        runtime._end_overdue()
        assert host.handle is handle, "five of these take longer than one deadline"
        runtime._calls.forget(host)
        assert call.answer(None) == [PlayerInstalled(name)]


@pytest.mark.parametrize(("kind", "number"), [("learner", 1), ("actor", 1), ("actor", 2)])
def test_the_run_ends_where_a_learner_host_or_every_actor_host_is_lost_again_and_again(kind: str, number: int) -> None:
    runtime = idle_runtime(actor_hosts=number, clock=[0.0])
    hosts = [runtime._roster.hosts[f"{kind}-{place}"] for place in range(number)]
    for host in hosts[:-1]:
        for _ in range(ray_runtime.MAX_FAILURES + 3):
            runtime._lose(host, "no room")
        assert host.parked
        assert host.start_at == ray_runtime.PARK_RETRY_S
    with pytest.raises(LeagueError, match=f"{kind}-{number - 1} was lost 6 times in a row.*no room.*league resume"):
        for _ in range(ray_runtime.MAX_FAILURES + 1):
            runtime._lose(hosts[-1], "no room")


def test_a_lease_is_not_overdue_while_its_learner_gives_no_sign() -> None:
    clock = [100.0]
    runtime = idle_runtime(clock=clock)
    actor, learner = runtime._roster.hosts["actor-0"], runtime._roster.hosts["learner-0"]
    actor.handle, learner.handle, learner.pid, learner.answered_at = Handle(), Handle(), 1, 100.0
    runtime._calls.expect("lease", actor, lambda result: [], deadline_s=QUICK.lease_s, learner=learner)
    clock[0] += QUICK.lease_s + 1.0
    runtime._end_overdue()
    assert actor.handle is not None, "the learner has said nothing for as long"
    learner.answered_at = clock[0]
    runtime._end_overdue()
    assert actor.handle is None


def test_players_of_a_removed_learner_host_belong_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(ray_runtime.ray, "kill", lambda handle, **_: ended.append(handle))
    settings = RuntimeConfig(kind="ray", actor_hosts=1, learner_hosts=3)
    names = tuple(f"main-{number}" for number in range(5))
    runtime = RayRuntime(setup_of(), settings, players=names, cluster=NoCluster())  # type: ignore[arg-type]
    handles = {name: Handle() for name in ("learner-0", "learner-1", "learner-2")}
    for name, handle in handles.items():
        runtime._roster.hosts[name].handle = handle
    assert runtime.remove_learner_host("learner-0") == ("main-0", "main-3")
    assert ended == [handles["learner-0"]]
    for name in ("main-0", "main-3", "main-1"):
        runtime.submit(InstallPlayer(name))
    assert {name: runtime._roster.learner_host_of(name).name for name in names} == {
        "main-0": "learner-2",
        "main-1": "learner-1",
        "main-2": "learner-2",
        "main-3": "learner-1",
        "main-4": "learner-1",
    }
    assert handles["learner-2"].asked == [("install", "main-0")]
    assert handles["learner-0"].asked == []
