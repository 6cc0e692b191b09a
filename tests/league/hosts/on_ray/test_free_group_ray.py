"""Replicas on clocks of their own as Ray actors: one that is killed stops nobody, and another takes its place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import ray
import torch

from league.agents.learner.build import build_updater
from league.agents.learner.workers.free_group import FreeGroup
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.worker_group import RayWorkerGroup
from tests.agents.learner.workers.test_free_group import INPUTS, PLAN, batch, config_of, finish

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""


def test_a_killed_replica_on_ray_is_replaced_while_the_other_works(ray_cluster: Cluster) -> None:
    group, _ = build_updater(PLAN, config_of("hogwild"), dtype=torch.float32, launcher=RayWorkerGroup)
    assert isinstance(group, FreeGroup)
    batches = (batch(seed % 8) for seed in itertools.count())
    try:
        first = group.weights()
        while not group.update([next(batches)], INPUTS).optimizer_steps:
            pass
        ray.kill(group._workers._actors[1], no_restart=True)  # type: ignore[union-attr]
        while not (lost := group.update([next(batches)], INPUTS).group.lost):
            pass
        assert len(lost) == 1 and lost[0].startswith("replica 1 was lost")
        while not group.update([next(batches)], INPUTS).group.batches:
            pass
        assert group._members[1].doing in ("starting", "loading")
        while group._members[1].doing != "idle":
            group._look(timeout_s=0.2)
        finish(group)
        assert np.isfinite(group.weights()).all() and np.abs(group.weights() - first).max() > 1e-3
    finally:
        group.close()
