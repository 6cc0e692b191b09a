"""Measures the speed of microbatches, replicas and pipeline stages, and checks that none changes the gradient.

Times are of paced stages (they sleep much longer than they compute), so that four stages can be read on two cores.
Every speed-up names what it is measured against. Gradients, memory and lag are real.
"""

from __future__ import annotations

import argparse
import dataclasses
import queue
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence

import torch

from benchmarks.learner.gradient_ranks import (
    COEFFICIENTS,
    CPU,
    Case,
    largest_difference,
    let_float64_through,
    run_in_processes,
)
from benchmarks.learner.policies import (
    BACKWARD_S_PER_ROW,
    FORWARD_S_PER_ROW,
    GAME,
    SIZES,
    build_lstm,
    build_transformer,
)
from benchmarks.report import Report
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import build_updater, local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import batch_from
from league.agents.learner.learner import Learner, UpdateReport
from league.agents.learner.pipeline.schedules import ideal_bubble
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.learner.workers.worker import NetworkPlan
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import layout_of

NETS = ("lstm", "transformer")
STAGES, MICROBATCHES = 4, 8
ROWS, STEPS = 32, 8
UPDATES = 2

ALL_STAGES = PipelineConfig(stages=STAGES, stage_cut=(1,) * STAGES)
COLUMNS: Mapping[str, Mapping[str, object]] = {
    "one device, whole batch": {},
    "one device, AMB": {"microbatches": MICROBATCHES},
    "data parallel": {"pipeline": PipelineConfig(replicas=STAGES)},
    "stages unpipelined": {"pipeline": dataclasses.replace(ALL_STAGES, schedule="gpipe"), "microbatches": 1},
    "stages + AMB": {"pipeline": ALL_STAGES, "microbatches": MICROBATCHES},
    "stages + AMB, threads": {
        "pipeline": dataclasses.replace(ALL_STAGES, backend="threaded_pipeline"),
        "microbatches": MICROBATCHES,
    },
}
SINGLE_FLOAT_LIMIT, DOUBLE_FLOAT_LIMIT = 1e-5, 1e-12


def main() -> None:
    """Run all parts and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object in the last line")
    options = parser.parse_args()
    prepare_process()
    report = Report()
    for net in NETS:
        add_columns(report, net)
        add_memory(report, net)
    add_streaming(report)
    add_gradients(report)
    report.print(sys.stdout, as_json=options.json)
    sys.exit(1 if report.failed else 0)


def add_columns(report: Report, net: str) -> None:
    """Seconds of an update in each column, the speed-ups, the bubble and the lag."""
    seconds, lags = {}, {}
    for name, changes in COLUMNS.items():
        updates = _updates_of(net, changes)
        seconds[name] = min(update.update_s for update in updates)
        lags[name] = max(update.lag_max for update in updates)
        report.add(f"{net}: update, {name} (S={STAGES}, M={MICROBATCHES}, paced)", seconds[name], "s")
    report.add(f"{net}: policy lag that any column adds", max(lags.values()), "updates", at_most=0.0)
    serial, ideal = seconds["one device, AMB"], ideal_bubble("1f1b", num_stages=STAGES, num_microbatches=MICROBATCHES)
    for name in ("stages + AMB", "stages + AMB, threads"):
        bubble = 1.0 - serial / (STAGES * seconds[name])
        report.add(f"{net}: bubble, {name}", bubble, "share")
        report.add(
            f"{net}: bubble minus (S-1)/(M+S-1) = {ideal:.3f}, {name}", abs(bubble - ideal), "share", at_most=0.05
        )
        gain = seconds["stages unpipelined"] / seconds[name]
        report.add(f"{net}: speed of {name} over the same stages unpipelined", gain, "x", at_least=2.5)
    whole = seconds["one device, whole batch"]
    report.add(f"{net}: speed of stages + AMB over one device", whole / seconds["stages + AMB"], "x")
    report.add(f"{net}: speed of data parallel (R={STAGES}) over one device", whole / seconds["data parallel"], "x")


def _updates_of(net: str, changes: Mapping[str, object]) -> list[UpdateReport]:
    """Reports of a few updates on fresh rows, the first one left out: it builds the schedules."""
    config = LearnerConfig(batch_rows=ROWS, unroll_length=STEPS, precision="float32", **changes)  # type: ignore[arg-type]
    plan = NetworkPlan(GAME, SIZES, seed=1, builder=f"benchmarks.learner.policies:build_paced_{net}")
    updater, layout = build_updater(plan, config, dtype=torch.float32)
    learner = Learner(updater, layout, config)
    unrolls = UnrollSpec.of(GAME, plan.build(), unroll_length=STEPS)
    try:
        reports = []
        for seed in range(UPDATES + 1):
            rows = synthetic_unrolls(unrolls, rows=ROWS, seed=seed)
            rows.versions[...] = learner.publish().version
            reports.append(learner.update(rows, budget_fraction=0.0))
        return reports[1:]
    finally:
        learner.close()


def add_memory(report: Report, net: str) -> None:
    """Peak bytes kept for the backward pass, by number of microbatches."""
    rows, steps = 64, 32
    network = {"lstm": build_lstm, "transformer": build_transformer}[net](GAME, SIZES, seed=1)
    config = LearnerConfig(batch_rows=rows, unroll_length=steps)
    backend = SingleBackend(network, make_objective(config, network.head), config, Placement(torch.float32, CPU))
    unrolls = synthetic_unrolls(UnrollSpec.of(GAME, network, unroll_length=steps), rows=rows, seed=0)
    batch = batch_from(unrolls, oldest_version=0, device=CPU)
    peaks = {}
    for number in (1, 2, 4, 8, 16):
        meter = KeptMeter([*batch.tensors(), *network.parameters()])
        with torch.autograd.graph.saved_tensors_hooks(meter.pack, KeptMeter.unpack):
            backend.accumulate(batch.microbatches(number), COEFFICIENTS)
        peaks[number] = meter.peak_bytes
        report.add(f"{net}: peak activation memory, M={number}", peaks[number] / 2**20, "MiB")
    falls = max(number * peak / peaks[1] for number, peak in peaks.items())
    report.add(f"{net}: M times the peak at M over the peak of the whole batch, largest", falls, "x", at_most=1.1)


class KeptMeter:
    """Counts the storages that autograd keeps for the backward pass, each once.

    Args:
      given: inputs and parameters, which are there anyway.
    """

    def __init__(self, given: Sequence[torch.Tensor]) -> None:
        self.peak_bytes = 0
        self._given = {tensor.untyped_storage().data_ptr() for tensor in given}
        self._live: dict[int, tuple[int, int]] = {}

    def pack(self, tensor: torch.Tensor) -> Kept:
        """Autograd keeps this instead of the tensor."""
        kept = Kept(tensor)
        storage = tensor.untyped_storage()
        pointer, size = storage.data_ptr(), storage.nbytes()
        if pointer not in self._given:
            self._live[pointer] = (size, self._live.get(pointer, (size, 0))[1] + 1)
            self.peak_bytes = max(self.peak_bytes, sum(size for size, _ in self._live.values()))
            weakref.finalize(kept, self._release, pointer)
        return kept

    @staticmethod
    def unpack(kept: Kept) -> torch.Tensor:
        """The tensor again."""
        return kept.tensor

    def _release(self, pointer: int) -> None:
        size, count = self._live.pop(pointer)
        if count > 1:
            self._live[pointer] = (size, count - 1)


@dataclasses.dataclass(eq=False, weakref_slot=True, slots=True)
class Kept:
    """A tensor kept for the backward pass."""

    tensor: torch.Tensor


def add_streaming(report: Report) -> None:
    """Rows that take as long to arrive as to compute: learning from each block at once, against collecting first."""
    config = LearnerConfig(batch_rows=16, unroll_length=STEPS, microbatches=MICROBATCHES)
    plan = NetworkPlan(GAME, SIZES, seed=1, builder="benchmarks.learner.policies:build_paced_lstm")
    compute_s = STAGES * config.batch_rows * (FORWARD_S_PER_ROW + BACKWARD_S_PER_ROW)
    seconds, digests = {}, {}
    for name in ("collect, then compute", "streaming"):
        network = plan.build()
        unrolls = UnrollSpec.of(GAME, network, unroll_length=STEPS)
        rows = synthetic_unrolls(unrolls, rows=config.batch_rows, seed=0)
        layout = layout_of(network)
        learner = Learner(local_updater(network, config, Placement(torch.float32, CPU)), layout, config)
        blocks = arriving(rows, number=MICROBATCHES, over_s=compute_s)
        start = time.perf_counter()
        learner.update_stream(blocks if name == "streaming" else list(blocks), budget_fraction=0.0)
        seconds[name] = time.perf_counter() - start
        digests[name] = learner.publish().digest()
        report.add(f"streaming: {name} (M={MICROBATCHES}, arrival = compute, paced)", seconds[name], "s")
    gain = seconds["collect, then compute"] / seconds["streaming"]
    report.add("streaming: speed over collecting first", gain, "x", at_least=1.5)
    same = len(set(digests.values())) == 1
    report.add("streaming: the weights after the update are the same, bit for bit", float(same), "yes=1", at_least=1.0)


def arriving(rows: Unrolls, *, number: int, over_s: float) -> Iterator[Unrolls]:
    """Equal blocks, the last of which arrives `over_s` seconds from now whatever the consumer does meanwhile."""
    arrived: queue.SimpleQueue[Unrolls] = queue.SimpleQueue()
    size = rows.num_rows // number

    def deliver() -> None:
        for at in range(0, rows.num_rows, size):
            time.sleep(over_s / number)
            arrived.put(rows.rows(at, at + size))

    threading.Thread(target=deliver, daemon=True).start()
    return (arrived.get(timeout=10 * over_s) for _ in range(number))


def add_gradients(report: Report) -> None:
    """The largest difference of any gradient from plain autograd's on the whole batch, for every backend."""
    worst: dict[tuple[str, str, str], float] = {}

    def note(case: Case, difference: float) -> None:
        name = "one device, AMB" if case.backend == "single" else case.backend
        key = (case.net, name if case.backend != "torch_pipeline" else f"processes, S={case.stages}", case.dtype)
        worst[key] = max(worst.get(key, 0.0), difference)  # of all heads and schedules

    let_float64_through()
    for case in _cases("single", 1, ("1f1b",)) + _cases("threaded_pipeline", STAGES, ("gpipe", "1f1b")):
        note(case, largest_difference(case))
    for num_ranks in (2, 3, 4):
        cases = _cases("torch_pipeline", num_ranks, ("gpipe", "1f1b"))
        if num_ranks == 2:
            cases += _cases("torch_pipeline", 4, ("interleaved",)) + _cases("data parallel", 1, ("1f1b",))
        for case, difference in run_in_processes(cases, num_ranks):
            note(case, difference)
    for (net, name, dtype), difference in worst.items():
        limit = SINGLE_FLOAT_LIMIT if dtype == "float32" else DOUBLE_FLOAT_LIMIT
        report.add(f"{net}: largest gradient difference, {name}, {dtype}", difference, "relative", at_most=limit)


def _cases(backend: str, stages: int, schedules: tuple[str, ...]) -> list[Case]:
    return [
        Case(net, head, dtype, backend, stages, schedule, MICROBATCHES)
        for net in NETS
        for head in ("categorical", "box")
        for dtype in ("float32", "float64")
        for schedule in schedules
    ]


if __name__ == "__main__":
    main()
