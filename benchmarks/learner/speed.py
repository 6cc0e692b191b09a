"""Speed of one learner, and the fraction of its time in the network's own forward and backward pass.

Runs on a bare machine with torch and numpy. A row of data is one decision. The floor is the same network's forward and
backward pass on the same microbatches without losses, optimizer and copies. On a GPU there are compiled variants too;
on a CPU the sizes are small and times are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import gc
import itertools
import math
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.learner.calls import calls_of, reads_of
from benchmarks.report import Report
from league.agents.learner.build import default_device, local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import batch_from
from league.agents.learner.data.feeder import GPU_DECODERS, Feeder
from league.agents.learner.learner import Learner
from league.agents.learner.step.backend import Placement
from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels import dense_chain
from league.agents.nets.kernels.dense import product
from league.agents.nets.network import Network, build_network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.codec import ChunkHeader, Lz4Codec, OpenChunk
from league.agents.unroll.ring import UnrollRing
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import layout_of
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, multi_categorical

DEVICE = default_device()
ON_GPU = DEVICE.type == "cuda"
DECODERS = GPU_DECODERS if ON_GPU else 1
"""Decoding threads of a feeder, as a learner host has them."""
WARM_UPS, REPEATS = (3, 5) if ON_GPU else (1, 2)
TURNS_S = 0.5
PIECES, FED_BATCHES = 8, 12
"""Chunks of a batch, and batches that pass the feeder."""
FEEDER_S = 60.0
"""Longest wait of the feeder's two ends."""
MATRIX = 8192 if ON_GPU else 1024

MODE_NAMES = {"none": "eager", "default": "compiled", "reduce-overhead": "compiled with CUDA graphs"}
LSTM_1024_ROWS = 1_000_000.0
MATRIX_SHARE = 0.45
"""Figures required on one H200."""


@dataclass(frozen=True)
class Workload:
    """A network and a batch.

    Fields:
      spec, network: what is built. unroll_length: T.
      gpu_rows, cpu_rows: unrolls in a batch there. gpu_microbatches: M there.
      at_least: decisions per second that a GPU must reach; matrix_fraction: of its matrix rate.
    """

    spec: EnvSpec
    network: NetworkConfig
    unroll_length: int
    gpu_rows: int
    cpu_rows: int
    gpu_microbatches: int = 1
    at_least: float | None = None
    matrix_fraction: float | None = None

    @property
    def config(self) -> LearnerConfig:
        """Of a learner for it on this machine."""
        rows, pieces = (self.gpu_rows, self.gpu_microbatches) if ON_GPU else (self.cpu_rows, 1)
        return LearnerConfig(unroll_length=self.unroll_length, batch_rows=rows, microbatches=pieces)

    def build(self) -> Network:
        """Its network, always with the same weights."""
        return build_network(self.spec, self.network, seed=1)

    def unrolls(self, network: Network) -> UnrollSpec:
        """The form of its learner's unrolls."""
        return UnrollSpec.of(self.spec, network, unroll_length=self.unroll_length)


def game(observations: Mapping[str, ArraySpec], actions: ActionSpec) -> EnvSpec:
    """A game that exists only as shapes."""
    return EnvSpec("benchmark", 2, dict(observations), actions, (0, 1), has_mask=actions.kind != "box")


UNITS = 128
ENTITIES = {
    "units": ArraySpec((UNITS, 64), "float32"),
    "units_mask": ArraySpec((UNITS,), "bool"),
    "scalars": ArraySpec((256,), "float32"),
}
ORDERS = multi_categorical((64, 16, UNITS, UNITS), points_at=("", "", "units", "units"))
VECTOR = {"state": ArraySpec((512,), "float32")}
WORKLOADS: Mapping[str, Workload] = {
    "MLP 128-128": Workload(
        game({"board": ArraySpec((84,), "bool")}, ActionSpec("categorical", num_actions=7)),
        NetworkConfig(),
        unroll_length=16,
        gpu_rows=16384,
        cpu_rows=128,
    ),
    "IMPALA ResNet + LSTM-256": Workload(
        game({"frame": ArraySpec((72, 96, 3), "uint8")}, ActionSpec("categorical", num_actions=18)),
        NetworkConfig(encoder="impala_resnet", hidden=(256,), core="lstm", core_size=256),
        unroll_length=20,
        gpu_rows=256,
        cpu_rows=2,
    ),
    "LSTM-1024": Workload(
        game(VECTOR, ActionSpec("categorical", num_actions=64)),
        NetworkConfig(hidden=(1024,), core="lstm", core_size=1024),
        unroll_length=16,
        gpu_rows=8192,
        cpu_rows=16,
        at_least=LSTM_1024_ROWS,
    ),
    "LSTM-4096": Workload(
        game(VECTOR, ActionSpec("categorical", num_actions=64)),
        NetworkConfig(hidden=(2048,), core="lstm", core_size=4096),
        unroll_length=16,
        gpu_rows=8192,
        cpu_rows=1,
        gpu_microbatches=2,
        matrix_fraction=MATRIX_SHARE,
    ),
    "entity transformer + deep LSTM + autoregressive head": Workload(
        game(ENTITIES, ORDERS),
        NetworkConfig(
            encoder="entities",
            hidden=(1024,),
            core="lstm",
            core_size=384,
            core_layers=3,
            entity_size=256,
            entity_layers=3,
            head="autoregressive",
            head_size=256,
        ),
        unroll_length=64,
        gpu_rows=512,
        cpu_rows=1,
        gpu_microbatches=4,  # 22 GiB of activations in bfloat16; a microbatch costs the same calls whatever its rows
        matrix_fraction=MATRIX_SHARE,
    ),
}


def main() -> None:
    """Run the chosen workloads and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object in the last line")
    parser.add_argument("--only", default="", help="run the workloads whose name contains this")
    modes = list(MODE_NAMES) if ON_GPU else ["none"]
    parser.add_argument("--modes", nargs="+", choices=list(MODE_NAMES), default=modes, help="of torch.compile")
    options = parser.parse_args()
    prepare_process()
    report = Report()
    print(f"device: {torch.cuda.get_device_name(DEVICE) if ON_GPU else 'CPU, one thread'}, torch {torch.__version__}")
    rates = {dtype: matrix_rate(dtype) for dtype in (torch.float32, torch.bfloat16)}
    for dtype, rate in rates.items():
        report.add(f"matrix product {MATRIX}, {_short(dtype)}", rate / 1e12, "TFLOP/s")
    for name, workload in WORKLOADS.items():
        if options.only.lower() in name.lower():
            add_workload(report, name, workload, rates, modes=options.modes)
    report.print(sys.stdout, as_json=options.json)
    sys.exit(1 if report.failed else 0)


def add_workload(
    report: Report, name: str, workload: Workload, rates: Mapping[torch.dtype, float], *, modes: Sequence[str]
) -> None:
    """All variants of one workload."""
    network = workload.build()
    flops = flops_per_decision(workload, network)
    dtypes = (torch.bfloat16,) if ON_GPU else (torch.float32, torch.bfloat16)
    for dtype in dtypes:
        for mode in modes:
            label = f"{name}, {_short(dtype)}, {MODE_NAMES[mode]}"
            seconds, decisions, floor_share = measure(workload, copy.deepcopy(network), dtype, mode)
            speed = decisions / seconds
            best = mode == "none"
            report.add(f"{label}: rows/s", speed, "1/s", at_least=workload.at_least if ON_GPU and best else None)
            report.add(f"{label}: share of the forward+backward floor", floor_share, "share")
            reached = speed * flops / rates[dtype]
            required = workload.matrix_fraction if ON_GPU and best else None
            report.add(
                f"{label}: share of the measured {_short(dtype)} matrix rate", reached, "share", at_least=required
            )
    calls, reads = counts(workload, copy.deepcopy(network))
    report.add(f"{name}: calls of torch in an update", calls, "calls")
    report.add(f"{name}: waits of the host for the device in an update", reads, "reads")
    feed, feed_by_clock = feeder_rates(workload, network)
    report.add(f"{name}: feeder, rows/s", feed, "1/s")
    report.add(f"{name}: feeder by the clock, rows/s", feed_by_clock, "1/s")
    report.add(f"{name}: feeder over learner", feed / speed, "x", at_least=1.2)
    report.add(f"{name}: feeder over learner by the clock", feed_by_clock / speed, "x")
    gc.collect()
    if ON_GPU:
        torch.cuda.empty_cache()


def measure(workload: Workload, network: Network, dtype: torch.dtype, mode: str) -> tuple[float, int, float]:
    """Seconds of the shortest update, decisions in it, and the median share of the floor, which takes turns with it.

    A feeder's ring holds the next batch by then, so that its first block is copied ahead.
    """
    config = dataclasses.replace(workload.config, compile_mode=mode, max_policy_lag=10**6)
    batches = itertools.cycle(in_ring(workload.unrolls(network), rows_of(workload, network), batches=2))
    block_rows = config.batch_rows // config.microbatches
    unrolls, following = next(batches), next(batches)
    placement = Placement(dtype=dtype, device=DEVICE)
    layout = layout_of(network)
    learner = Learner(local_updater(network, config, placement), layout, config)
    batch = batch_from(unrolls, oldest_version=0, device=DEVICE)
    parts = batch.microbatches(config.microbatches)

    def forward_and_backward() -> None:
        for part in parts:
            with placement.autocast():
                output = network(part.obs, resets=part.resets, core=part.core, action_mask=part.action_mask)
            torch.autograd.backward(output.logits.sum() + output.values.sum())

    def update() -> None:
        nonlocal unrolls, following
        blocks = [unrolls.rows(at, at + block_rows) for at in range(0, unrolls.num_rows, block_rows)]
        learner.update_stream(blocks, budget_fraction=0.0, ahead=lambda: following.rows(0, block_rows))
        unrolls, following = following, next(batches)

    turns = in_turns(update, forward_and_backward)
    learner.close()
    share = statistics.median(floor_s / update_s for update_s, floor_s in turns)
    return min(update_s for update_s, _ in turns), unrolls.valid.size, share


def counts(workload: Workload, network: Network) -> tuple[int, int]:
    """Calls of torch in an eager update, and reads of the device by the host."""
    config, unrolls = dataclasses.replace(workload.config, max_policy_lag=10**6), rows_of(workload, network)
    layout, placement = layout_of(network), Placement(dtype=torch.float32, device=DEVICE)
    learner = Learner(local_updater(network, config, placement), layout, config)

    def update() -> None:
        learner.update(unrolls, budget_fraction=0.0)

    update()  # the first step makes the optimizer's state
    found = calls_of(update).total, reads_of(update).total()
    learner.close()
    return found


def in_turns(*calls: Callable[[], object], clock: Callable[[], float] | None = None) -> list[tuple[float, ...]]:
    """Seconds of each call in every turn after some to warm up.

    Calls that take turns meet the same load of the machine. Short ones are repeated for `TURNS_S` in all.

    Args:
      clock: None for wall time on a GPU, and CPU time elsewhere.
    """
    clock = clock or (time.perf_counter if ON_GPU else time.process_time)
    turns: list[tuple[float, ...]] = []
    while len(turns) < WARM_UPS + REPEATS or sum(map(sum, turns)) < TURNS_S:
        times = []
        for call in calls:
            _settle()
            start = clock()
            call()
            _settle()
            times.append(clock() - start)
        turns.append(tuple(times))
    return turns[WARM_UPS:]


def shortest(call: Callable[[], object]) -> float:
    """Seconds of the shortest of a few calls."""
    return min(seconds for (seconds,) in in_turns(call))


def rows_of(workload: Workload, network: Network) -> Unrolls:
    """A batch for this machine."""
    return synthetic_unrolls(workload.unrolls(network), rows=workload.config.batch_rows, seed=0)


def in_ring(spec: UnrollSpec, unrolls: Unrolls, *, batches: int = 1) -> list[Unrolls]:
    """The batch several times, as a feeder hands them over, in one ring."""
    rows = unrolls.num_rows
    ring = UnrollRing(spec, capacity=batches * rows, pinned=ON_GPU)
    for number in range(batches):
        ring.write(unrolls, at=number * rows)
    return [ring.read(at=number * rows, count=rows) for number in range(batches)]


def flops_per_decision(workload: Workload, network: Network) -> float:
    """Floating-point operations of the forward and backward pass, counted on one row, the bootstrap step shared out."""
    unrolls = synthetic_unrolls(workload.unrolls(network), rows=1, seed=0)
    # One reset, so that a recurrent core takes the form whose products can be counted.
    unrolls.resets[:, -1] = True
    batch = batch_from(unrolls, oldest_version=0, device=torch.device("cpu"))
    layer_by_layer = mock.patch.object(dense_chain, "takes", return_value=False)  # the compiled kernel is not counted
    with layer_by_layer, FlopCounterMode(display=False, custom_mapping=fused_products()) as counter:
        output = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
        torch.autograd.backward(output.logits.sum() + output.values.sum())
    network.zero_grad(set_to_none=True)
    return float(counter.get_total_flops()) / workload.unroll_length


def fused_products() -> dict[Any, Any]:
    """Counts the operations of the fused product that dense layers use on a CPU."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return {}

    def count(inputs: Sequence[int], weight: Sequence[int], *_: object, **__: object) -> int:
        return 2 * math.prod(inputs) * weight[0]

    return {torch.ops.mkldnn._linear_pointwise: count}


def matrix_rate(dtype: torch.dtype) -> float:
    """Floating-point operations per second of a large square matrix product."""
    left, right = (torch.randn(MATRIX, MATRIX, device=DEVICE).to(dtype) for _ in range(2))
    return 2.0 * MATRIX**3 / shortest(lambda: product(left, right))


def feeder_rates(workload: Workload, network: Network) -> tuple[float, float]:
    """Decisions per second from the bytes of a chunk to rows in the ring: by its slowest thread, and by the clock.

    One thread takes pushes and checks chunks; `DECODERS` others decompress them and copy them into the ring. By the
    clock they also wait for each other, for cores and for memory.
    """
    config = workload.config
    unrolls = rows_of(workload, network)
    piece = unrolls.rows(0, max(1, unrolls.num_rows // PIECES))
    codec = Lz4Codec()
    chunk = codec.encode(piece, ChunkHeader(run="speed", player="main-0", version_min=0, version_max=0))
    feeder = Feeder(
        workload.unrolls(network),
        config,
        decode=OpenChunk.unrolls,
        threads=DECODERS,
        pinned=ON_GPU,
        clock=time.thread_time,
    )
    feeder.start()
    checked_s = 0.0

    def push() -> None:
        nonlocal checked_s
        for _ in range(FED_BATCHES * config.batch_rows // piece.num_rows):
            began = time.thread_time()
            opened = codec.open(chunk)
            checked_s += time.thread_time() - began
            feeder.push(opened, num_rows=piece.num_rows, timeout_s=FEEDER_S)

    pushing = threading.Thread(target=push)
    began_at = time.perf_counter()
    pushing.start()
    for _ in range(FED_BATCHES):
        with feeder.batch(timeout_s=FEEDER_S) as blocks:
            list(blocks)
    passed_s = time.perf_counter() - began_at
    pushing.join()
    feeder.close()
    slowest_s = max(checked_s, feeder.report().decode_s / DECODERS, 1e-9)
    decisions = FED_BATCHES * config.batch_rows * workload.unroll_length
    return decisions / slowest_s, decisions / passed_s


def _short(dtype: torch.dtype) -> str:
    return {torch.float32: "fp32", torch.bfloat16: "bf16"}[dtype]


def _settle() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
