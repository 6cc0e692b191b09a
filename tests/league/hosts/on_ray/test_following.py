"""The Ray runtime follows the machines of a made-up cluster; no Ray runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from league.config.run_config import RuntimeConfig
from league.hosts.on_ray import runtime as ray_runtime
from league.hosts.on_ray.nodes.host_placement import NO_ROOM
from league.hosts.on_ray.nodes.node_watch import Node, NodeWatch, agree
from league.hosts.on_ray.roster import Host
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import HostLost, HostStarted, NodeInfo, Remark, Report
from tests.league.hosts.host_cases import setup_of
from tests.league.hosts.on_ray.nodes.machines import machine
from tests.league.hosts.on_ray.test_ray_losses import Handle, NoCluster

HEAD, ONE, TWO = (
    replace(machine(name, cpus=cpus), node_id=hashlib.sha224(name.encode()).hexdigest())
    for name, cpus in (("head", 1), ("one", 2), ("two", 1))
)


NO_PID = 2**30
"""More than any process has: what a host is ended with must not meet another process."""


class Following:
    """A runtime whose hosts come up at once on the machine that they are placed on."""

    def __init__(self, nodes: list[Node], monkeypatch: pytest.MonkeyPatch, *, actor_hosts: int = 0) -> None:
        self.nodes = nodes
        self.watch = NodeWatch(read=lambda: list(self.nodes), ask=agree)
        monkeypatch.setattr(self.watch, "start", self.watch.look)
        monkeypatch.setattr(ray_runtime.ray, "wait", lambda references, **_: ([], references))
        monkeypatch.setattr(ray_runtime.ray, "kill", lambda handle, **_: None)
        settings = RuntimeConfig(kind="ray", actor_hosts=actor_hosts, learner_hosts=1)
        self.clock = [0.0]
        self.runtime = RayRuntime(
            setup_of(),
            settings,
            players=("main-0",),
            monotonic=lambda: self.clock[0],
            cluster=NoCluster(),  # type: ignore[arg-type]
            watch=self.watch,
        )
        monkeypatch.setattr(self.runtime, "_spawn", self._spawn)
        monkeypatch.setattr(self.runtime, "_ask_progress", lambda budget_fraction: None)
        self.runtime.start()

    def _spawn(self, host: Host) -> None:
        host.handle = Handle()
        strategy = self.runtime._placement.actor_options(host.name).get("scheduling_strategy")
        where = HEAD.node_id if strategy is None else strategy.node_id
        self.runtime._reports.extend(self.runtime._ready(host, NO_PID, where))

    def poll(self) -> list[Report]:
        self.watch.look()
        self.clock[0] += 60.0
        return self.runtime.poll(0.0, budget_fraction=0.0)

    def where(self) -> dict[str, str]:
        return {host: node.name for node in self.runtime.nodes() for host in node.hosts}


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> Iterator[Following]:
    yield Following([HEAD, ONE], monkeypatch)


def actors(reports: list[Report]) -> list[str]:
    return [report.host for report in reports if isinstance(report, HostStarted) and report.kind == "actor_host"]


def test_the_hosts_of_a_joined_machine_are_up_with_the_next_poll_and_of_one_that_left_are_lost(
    following: Following,
) -> None:
    assert actors([*following.poll(), *following.poll()]) == ["actor-0", "actor-1"]
    assert following.runtime.nodes()[1] == NodeInfo("one (10.0.0.3)", "10.0.0.3", 2.0, 0.0, ("actor-0", "actor-1"))
    following.nodes.append(TWO)
    assert actors([*following.poll(), *following.poll()]) == ["actor-2"]
    following.nodes.remove(ONE)
    lost = [report for report in following.poll() if isinstance(report, HostLost)]
    assert [(report.host, report.reason, report.for_good) for report in lost] == [
        (host, "its machine has left the cluster", True) for host in ("actor-0", "actor-1")
    ]
    assert set(following.where()) == {"learner-0", "actor-2"}
    following.nodes.append(ONE)
    assert actors([*following.poll(), *following.poll()]) == ["actor-3", "actor-4"], "names are never used again"


def test_a_cluster_without_room_for_an_actor_host_is_spoken_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Following([HEAD], monkeypatch)
    said = [report.text for _ in range(4) for report in made.poll() if isinstance(report, Remark)]
    assert said == [NO_ROOM]
    made.nodes.append(TWO)
    assert actors([*made.poll(), *made.poll()]) == ["actor-0"]


def test_a_call_of_a_host_whose_machine_left_is_forgotten(following: Following) -> None:
    following.poll()
    following.poll()
    host = following.runtime._roster.hosts["actor-0"]
    following.runtime._calls.expect("lease", host, lambda answer: [], deadline_s=1e9)
    following.nodes.remove(ONE)
    following.poll()
    assert all(call.host is not host for call in following.runtime._calls)


def test_a_host_that_died_comes_again_on_its_own_machine(following: Following) -> None:
    following.poll()
    following.poll()
    following.runtime._lose(following.runtime._roster.hosts["actor-1"], "killed")
    assert actors([*following.poll(), *following.poll()]) == ["actor-1"]
    assert following.where()["actor-1"] == "one (10.0.0.3)"


def test_hosts_are_added_and_removed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Following([HEAD, ONE], monkeypatch, actor_hosts=1)
    made.poll()
    assert made.runtime.add_actor_host() == "actor-1"
    assert "actor-1" in actors(made.poll() + made.poll())
    made.runtime.remove_actor_host("actor-1")
    assert not any(isinstance(report, HostLost) for report in made.poll())
    assert made.runtime.add_actor_host() == "actor-2"
    made.runtime.remove_actor_host("actor-1")


def test_a_removed_host_leaves_its_cpu_free_until_its_machine_leaves(following: Following) -> None:
    following.poll()
    following.poll()
    following.runtime.remove_actor_host("actor-0")
    assert [actors(following.poll()), actors(following.poll())] == [[], []]
    following.nodes.remove(ONE)
    assert [report.host for report in following.poll() if isinstance(report, HostLost)] == ["actor-1"]
    following.nodes.append(ONE)
    assert actors([*following.poll(), *following.poll()]) == ["actor-2", "actor-3"]


def test_a_host_on_a_machine_of_another_version_is_lost_with_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Following([HEAD, ONE], monkeypatch, actor_hosts=1)
    made.watch._verdicts[ONE.node_id] = "Machine one is not used: it has torch 1.9 (here 2.13)."
    actor = made.runtime._roster.hosts["actor-0"]
    assert made.runtime._ready(actor, 9, ONE.node_id) == []
    (lost,) = [report for report in made.poll() if isinstance(report, HostLost)]
    assert "it has torch 1.9" in lost.reason
