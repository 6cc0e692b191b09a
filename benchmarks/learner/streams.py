"""Two stages and two replicas of one learner on one GPU, each with a stream, against the same learner without.

    python -m benchmarks.learner.streams --json

On a CPU the stages and replicas are threads that need a core each, and the sizes are small. Times are wall times. Every
learner with stages compares its gradients with plain autograd's when it is built.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import statistics
import sys
import time
from collections.abc import Mapping, Sequence

import torch

from benchmarks.learner.speed import DEVICE, ON_GPU, WORKLOADS, Workload, in_ring, in_turns, rows_of
from benchmarks.report import Report
from league.agents.learner.build import build_learner
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.torch_runtime import prepare_process

PIECES = 4
STAGES = PipelineConfig(backend="threaded_pipeline", stages=2)
WAYS: Mapping[str, Mapping[str, object]] = {
    "one stream": {"microbatches": 1},
    "one stream, pieces": {"microbatches": PIECES},
    "two stages": {"microbatches": PIECES, "pipeline": STAGES},
    "two replicas": {"microbatches": 1, "pipeline": PipelineConfig(threads=2)},
}
BASES = {"two stages": "one stream, pieces", "two replicas": "one stream"}


def learner_of(workload: Workload, changes: Mapping[str, object], *, dtype: torch.dtype) -> Learner:
    """A learner for a workload in one of the ways."""
    config = dataclasses.replace(workload.config, max_policy_lag=10**6, **changes)  # type: ignore[arg-type]
    return build_learner(workload.spec, workload.network, config, seed=1, dtype=dtype)


def add_workload(report: Report, name: str, workload: Workload) -> None:
    """Milliseconds of an update in each way, and the ratios; the ways take turns."""
    dtype = torch.bfloat16 if ON_GPU else torch.float32
    learners = {way: learner_of(workload, changes, dtype=dtype) for way, changes in WAYS.items()}
    network = workload.build()
    (unrolls,) = in_ring(workload.unrolls(network), rows_of(workload, network))
    updates = [lambda learner=learner: learner.update(unrolls, budget_fraction=0.0) for learner in learners.values()]
    turns = in_turns(*updates, clock=time.perf_counter)
    for learner in learners.values():
        learner.close()
    times = dict(zip(WAYS, zip(*turns, strict=True), strict=True))
    for way, seconds in times.items():
        report.add(f"{name}: update, {way}", 1e3 * min(seconds), "ms")
    for way, base in BASES.items():
        gain = statistics.median(whole / cut for whole, cut in zip(times[base], times[way], strict=True))
        report.add(f"{name}: speed of {way} over {base}", gain, "x")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen workloads and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object in the last line")
    parser.add_argument("--only", default="", help="run the workloads whose name contains this")
    options = parser.parse_args(arguments)
    prepare_process()
    print(f"device: {torch.cuda.get_device_name(DEVICE) if ON_GPU else 'CPU'}, torch {torch.__version__}")
    report = Report()
    for name, workload in WORKLOADS.items():
        if options.only.lower() in name.lower() and workload.config.batch_rows % PIECES == 0:
            add_workload(report, name, workload)
            gc.collect()
    report.print(sys.stdout, as_json=options.json)


if __name__ == "__main__":
    main()
