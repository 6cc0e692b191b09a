"""An inference host as a Ray actor: leases are played through it, and its loss costs the open lease and no more."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    PlayerInstalled,
    PlayLease,
)
from tests.league.hosts.host_cases import lease_of, paired, setup_of, weights_of
from tests.league.hosts.on_ray.test_ray_runtime import SETTINGS, Watched

pytestmark = pytest.mark.xdist_group("ray")


def test_leases_are_played_through_an_inference_host_whose_loss_costs_the_open_lease(ray_cluster: Cluster) -> None:
    setup = replace(setup_of(EnvConfig("connect_four")), inference=f"tests-{os.getpid()}")
    found = Watched(RayRuntime(setup, SETTINGS, players=("main-0",), cluster=ray_cluster))
    try:
        found.runtime.start()
        found.until_all(HostStarted("learner-0", "learner_host", ("main-0",)), HostStarted("actor-0", "actor_host"))
        found.runtime.submit(InstallPlayer("main-0"))
        found.until_all(PlayerInstalled("main-0"))
        frozen = {"main-0-s0": weights_of(setup, seed=5)}
        found.runtime.submit(PlayLease(lease_of(*paired("main-0", "main-0-s0")), frozen))
        done = found.until(lambda report: isinstance(report, LeaseDone))
        assert isinstance(done, LeaseDone)
        assert sum(outcome.games for outcome in done.answer.outcomes) > 0
        found.until(lambda report: isinstance(report, LearnerProgress) and report.update is not None)
        pid = found.pid("inference_host")
        assert len({pid, found.pid("actor_host"), found.pid("learner_host")}) == 3

        found.runtime.submit(PlayLease(lease_of(lease_id=2, steps=100_000), {}))
        found.until(lambda report: isinstance(report, LearnerProgress))
        os.kill(pid, signal.SIGKILL)
        found.until(lambda report: isinstance(report, LeaseLost) and report.lease_id == 2)
        assert [report.host for report in found.reports if isinstance(report, HostLost)] in ([], ["inference-0"])
        found.runtime.submit(PlayLease(lease_of(lease_id=3), {}))
        found.until(lambda report: isinstance(report, LeaseDone) and report.answer.lease_id == 3)
        assert found.pid("inference_host") != pid
    finally:
        found.runtime.close()


def test_a_cluster_of_others_has_no_inference_host() -> None:
    setup = replace(setup_of(), inference="tests")
    runtime = RayRuntime(setup, replace(SETTINGS, address="127.0.0.1:1"), players=("main-0",))
    with pytest.raises(LeagueError, match=r"actors\.inference: central shares memory"):
        runtime.start()
