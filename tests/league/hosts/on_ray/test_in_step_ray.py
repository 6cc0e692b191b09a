"""Actor hosts that wait for their updates on Ray: what is learnt from was acted by the newest weights."""

from __future__ import annotations

import dataclasses

import pytest

from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import (
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    PlayerInstalled,
    PlayLease,
    Report,
)
from tests.league.hosts.host_cases import lease_of, setup_of
from tests.league.hosts.on_ray.test_ray_runtime import SETTINGS, Watched

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

UPDATES = 20


def test_no_decision_is_older_than_the_newest_weights(ray_cluster: Cluster) -> None:
    setup = setup_of(EnvConfig("gymnasium:CartPole-v1"), num_envs=8, chunk_rows=8)  # a row of each game is one batch
    setup = dataclasses.replace(setup, wait_for_update=True)
    made = Watched(RayRuntime(setup, SETTINGS, players=("main-0",), cluster=ray_cluster))
    made.runtime.start()
    try:
        made.until_all(HostStarted("actor-0", "actor_host"), HostStarted("learner-0", "learner_host", ("main-0",)))
        made.runtime.submit(InstallPlayer("main-0"))
        made.until_all(PlayerInstalled("main-0"))
        alone = Assignment(("main-0",), (True,), 1.0)
        lags = set[int]()
        for number in range(3):
            steps = UPDATES * setup.learner.unroll_length
            made.runtime.submit(PlayLease(lease_of(alone, lease_id=number, steps=steps), frozen={}))
            made.until(lambda report: isinstance(report, LeaseDone))
            version = UPDATES * (number + 1) - 1  # a row is whole with the observation behind it, in the next lease

            def is_learnt(report: Report, version: int = version) -> bool:
                return isinstance(report, LearnerProgress) and report.progress.version == version

            progress = made.until(is_learnt)
            assert isinstance(progress, LearnerProgress) and progress.update is not None
            lags.add(progress.update.lag_max)
        assert lags == {0}
    finally:
        made.runtime.close()
