"""Replicas on clocks of their own: what a slow one costs, what a second core brings, and what Ray takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.report import Report
from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.build import build_updater
from league.agents.learner.config import LearnerConfig, PipelineConfig
from league.agents.learner.step.updater import UpdateInputs, Updater
from league.agents.learner.workers.free_group import FreeGroup
from league.agents.learner.workers.thread_group import ThreadWorkerGroup
from league.agents.learner.workers.worker import NetworkPlan, WorkerSetup
from league.agents.learner.workers.worker_group import ProcessWorkerGroup, WorkerGroupLauncher
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of

REPLICAS, SLEPT_S, SLOWDOWN = 4, 0.1, 5.0
MEASURED_S, WARM_UP_BATCHES = 6.0, 8
ROWS = 128
INPUTS = UpdateInputs(1e-3, LossWeights(0.1, 1.0), oldest_version=0, microbatches_per_block=1)

FREE: dict[str, object] = {
    "parameter_server": {"kind": "parameter_server", "shards": 1},
    "hogwild": {"kind": "hogwild"},
    "asynchronous gossip": {"kind": "gossip", "asynchronous": True},
}
"""Name of a figure -> the update mode."""

HOGWILD = PipelineConfig(replicas=2, update_mode={"kind": "hogwild"})


def free_modes(folder: Path) -> Report:
    """The rows of this part."""
    report = Report()
    for name, mode in FREE.items():
        share = share_of_speeds(mode, folder / name.replace(" ", "-"))
        report.add(f"{name}, 4 slept replicas, one 5 times slower: speed over the sum", share, "ratio", at_least=0.8)
    share = share_of_speeds("all_reduce", folder / "all-reduce", launcher=ProcessWorkerGroup)
    report.add("all_reduce, the same", share, "ratio")
    one, two = (decisions_per_second(replicas) for replicas in (1, 2))
    report.add("hogwild, one replica in a process", one, "decisions/s")
    report.add("hogwild, two over one replica", two / one, "ratio", at_least=1.6)
    report.add("hogwild, until a killed replica is back", seconds_to_return(), "s", at_most=15.0)
    return report


def seconds_to_return() -> float:
    """From the kill of one of two replicas until it takes batches again, while the other learns."""
    groups: list[ProcessWorkerGroup] = []

    def launch(setups: Sequence[WorkerSetup]) -> ProcessWorkerGroup:
        groups.append(ProcessWorkerGroup(setups))
        return groups[0]

    updater, rows = _built(LearnerConfig(batch_rows=ROWS, precision="float32", pipeline=HOGWILD), launch)
    assert isinstance(updater, FreeGroup)
    try:
        for _ in range(WARM_UP_BATCHES):
            updater.update([rows], INPUTS)
        begun = time.perf_counter()
        groups[0].processes[1].kill()
        while not updater.update([rows], INPUTS).group.lost:
            pass
        while updater.num_ready < HOGWILD.replicas:
            updater.update([rows], INPUTS)
        return time.perf_counter() - begun
    finally:
        updater.close()


def share_of_speeds(
    mode: object,
    slow_file: Path,
    *,
    launcher: WorkerGroupLauncher = ThreadWorkerGroup,
    measured_s: float = MEASURED_S,
) -> float:
    """Batches per second of slept replicas, one of them slow, over the sum of what each could do alone."""
    backend = {
        "kind": "benchmarks.lineage.slept:SleptBackend",
        "seconds": SLEPT_S,
        "slow_file": str(slow_file),
        "slowdown": SLOWDOWN,
    }
    pipeline = PipelineConfig(backend=backend, replicas=REPLICAS, update_mode=mode)  # type: ignore[arg-type]
    config = LearnerConfig(unroll_length=4, batch_rows=8, precision="float32", pipeline=pipeline)
    parts = REPLICAS if mode == "all_reduce" else 1  # of one batch, each by one replica
    batches = parts * batches_per_second(config, launcher=launcher, measured_s=measured_s)
    return batches / ((REPLICAS - 1 + 1.0 / SLOWDOWN) / SLEPT_S)


def decisions_per_second(replicas: int) -> float:
    """Of Hogwild in processes, a core each; one replica alone is called as a group of one would be."""
    mode = FREE["hogwild"] if replicas > 1 else "all_reduce"
    pipeline = PipelineConfig(replicas=replicas, update_mode=mode)  # type: ignore[arg-type]
    config = LearnerConfig(batch_rows=ROWS, precision="float32", pipeline=pipeline)
    rate = batches_per_second(config, launcher=ProcessWorkerGroup, measured_s=MEASURED_S)
    return rate * ROWS * config.unroll_length


def batches_per_second(config: LearnerConfig, *, launcher: WorkerGroupLauncher, measured_s: float) -> float:
    """Batches that an updater finishes in a second, after some to warm up."""
    updater, rows = _built(config, launcher)
    try:
        for _ in range(WARM_UP_BATCHES):
            updater.update([rows], INPUTS)
        begun, finished = time.perf_counter(), 0
        while time.perf_counter() - begun < measured_s:
            result = updater.update([rows], INPUTS)
            finished += result.group.batches if config.pipeline.is_free else 1
        return finished / (time.perf_counter() - begun)
    finally:
        updater.close()


def _built(config: LearnerConfig, launcher: WorkerGroupLauncher) -> tuple[Updater, Unrolls]:
    """An updater of a network for Connect Four, and a batch for it."""
    spec = spec_of(EnvConfig(id="connect_four"))
    network = NetworkConfig(hidden=(128, 128))
    unrolls = UnrollSpec.of(spec, build_network(spec, network, seed=1), unroll_length=config.unroll_length)
    updater, _ = build_updater(NetworkPlan(spec, network, seed=1), config, dtype=torch.float32, launcher=launcher)
    return updater, synthetic_unrolls(unrolls, rows=config.batch_rows, seed=1)
