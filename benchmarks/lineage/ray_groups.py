"""A learner's group of replicas as Ray actors beside the same group in processes of its own, for every update mode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.lineage.free_modes import ROWS, batches_per_second
from benchmarks.report import Report
from league.agents.learner.config import LearnerConfig
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.workers.worker_group import ProcessWorkerGroup
from league.envs.component_choice import Component
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.worker_group import RayWorkerGroup

REPLICAS, MEASURED_S = 2, 5.0
MODES: Mapping[str, Component] = {
    "all_reduce": "all_reduce",
    "local_sgd, H 8": {"kind": "local_sgd", "period": 8},
    "gossip": "gossip",
    "asynchronous gossip": {"kind": "gossip", "asynchronous": True},
    "parameter_server": "parameter_server",
    "hogwild": "hogwild",
}


def ray_groups(_: Path) -> Report:
    """Batches per second of a group on Ray over those of the group in processes; the two are measured in turn."""
    report = Report()
    cluster = Cluster("local", num_hosts=REPLICAS + 1, object_store_mb=200)
    cluster.start()
    try:
        for name, mode in MODES.items():
            pipeline = PipelineConfig(replicas=REPLICAS, update_mode=mode)
            config = LearnerConfig(batch_rows=ROWS, precision="float32", pipeline=pipeline)
            apart, on_ray = (
                batches_per_second(config, launcher=launcher, measured_s=MEASURED_S)
                for launcher in (ProcessWorkerGroup, RayWorkerGroup)
            )
            report.add(f"{name}, {REPLICAS} replicas in processes", apart, "batches/s")
            report.add(f"{name}, on Ray over in processes", on_ray / apart, "ratio", at_least=0.8)
    finally:
        cluster.close()
    return report
