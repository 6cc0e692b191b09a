"""The shipped pipeline configuration on Ray: two stages in processes of their own learn what one process learns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.learner.build import build_learner
from league.agents.learner.config import PipelineConfig
from league.agents.nets.network import build_network
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.config.loading import load_config
from league.config.run_config import RunConfig
from league.core.state.records import Assignment
from league.envs.registry import make
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.worker_group import RayWorkerGroup
from tests.league.commands import ROOT

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

CONFIG = ROOT / "configs" / "connect_four_pipeline.yaml"
ROWS = 16
UPDATES = 50
MAX_DIFFERENCE = 1e-4


def recorded(config: RunConfig) -> Unrolls:
    """Games that the first weights play against themselves; 50 batches and not one row more."""
    env = make(config.env, num_envs=64)
    network = build_network(env.spec, config.network, seed=1)
    policy = NetworkPolicy(network)
    unrolls = UnrollSpec.of(env.spec, network, unroll_length=config.learner.unroll_length)
    arena = Arena(env, unrolls, seed=5)
    parts: list[Unrolls] = []
    assignments = [Assignment(("main-0", "main-0"), (True, True), 1.0)]
    while sum(part.num_rows for part in parts) < UPDATES * ROWS:
        parts.extend(arena.run(assignments, {"main-0": policy}, steps=40))
    arena.close()
    return concatenate(parts).rows(0, UPDATES * ROWS)


def test_two_stages_on_ray_have_the_losses_of_one_process_for_fifty_updates(ray_cluster: Cluster) -> None:
    config = load_config(CONFIG)
    piped_settings = dataclasses.replace(config.learner, batch_rows=ROWS, precision="float32")
    single_settings = dataclasses.replace(piped_settings, pipeline=PipelineConfig(), microbatches=1)
    spec = make(config.env, num_envs=1).spec
    unrolls = recorded(config)
    assert piped_settings.pipeline.backend_name == "torch_pipeline" and piped_settings.pipeline.num_workers == 2
    single = build_learner(spec, config.network, single_settings, seed=3, dtype=torch.float32)
    piped = build_learner(spec, config.network, piped_settings, seed=3, dtype=torch.float32, launcher=RayWorkerGroup)
    names = ("loss_policy", "loss_value", "entropy", "kl")
    try:
        for update in range(UPDATES):
            rows = unrolls.rows(update * ROWS, (update + 1) * ROWS)
            reports = [learner.update(rows, budget_fraction=update / UPDATES) for learner in (single, piped)]
            assert reports[0].steps == reports[1].steps > 0
            assert not reports[0].skipped and not reports[1].skipped
            losses = np.array([[getattr(report, name) for name in names] for report in reports])
            np.testing.assert_allclose(losses[1], losses[0], rtol=0, atol=MAX_DIFFERENCE, err_msg=f"update {update}")
        assert (
            single.publish().digest()
            != build_learner(spec, config.network, single_settings, seed=3, dtype=torch.float32).publish().digest()
        )
    finally:
        piped.close()
        single.close()
