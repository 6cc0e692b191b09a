"""Projected time of an update on a GPU, from counts made on a CPU. A projection, no measurement.

Each workload of `benchmarks.learner.speed` is counted at its GPU size. Counted for a decision are products of matrices,
the bytes of all other kernels, and the bytes copied to the device; for an update its kernels. The device, its
host and the copies work side by side, so the slowest of the three is the time of an update.

The GPU is described by `Device`; see there for where its numbers come from.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from dataclasses import dataclass

import torch

from benchmarks.learner.calls import Calls, calls_of, lstm_as_one_call
from benchmarks.learner.speed import WORKLOADS, Workload, flops_per_decision, in_ring, rows_of
from benchmarks.report import Report
from league.agents.learner.build import local_updater
from league.agents.learner.data.batch import batch_from
from league.agents.learner.learner import Learner
from league.agents.learner.step.backend import Placement
from league.agents.nets.network import Network, build_network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.unroll import Unrolls
from league.agents.weights import layout_of

CPU = torch.device("cpu")
ROWS = (1, 2)
"""Unrolls of the two updates whose difference is what one more unroll costs."""
GATE_VALUES = 24
"""Values of bfloat16 that a unit of an LSTM reads and writes in a step, beside products: four gates forward, stored,
read back and their gradients, cell and output with theirs. cuDNN does this inside its calls, where nothing counts."""


@dataclass(frozen=True)
class Device:
    """A GPU and its host, as assumed.

    Fields:
      product_rate: operations per second of large bfloat16 matrix products, dense.
      product_share: of that rate in the products of a network, whose sides are shorter.
      memory_rate: bytes per second that kernels read and write, of which the data sheet says a quarter more.
      copy_rate: bytes per second from pinned memory to the device.
      kernel_s: seconds of the host for each kernel it launches from Python, gradients included.
      layer_step_s: seconds of one step of one recurrent layer in cuDNN, forward and back, where the step itself is
        small: its kernels wait for one another.
    """

    name: str
    product_rate: float
    product_share: float
    memory_rate: float
    copy_rate: float
    kernel_s: float
    layer_step_s: float


H200 = Device("H200", 790e12, 0.7, 3.8e12, 25e9, 8e-6, 15e-6)
H100 = Device("H100", 790e12, 0.7, 2.7e12, 25e9, 8e-6, 15e-6)


@dataclass(frozen=True)
class Work:
    """Demands of an update.

    Fields:
      decisions: in a batch.
      flops: operations of matrix products. kernel_bytes: read and written by all other kernels.
      copied_bytes: from the host to the device. kernels: launched, microbatches included.
      layer_steps: steps of recurrent layers that wait for one another.
    """

    decisions: int
    flops: float
    kernel_bytes: float
    copied_bytes: float
    kernels: float
    layer_steps: int


@dataclass(frozen=True)
class Projection:
    """Seconds of an update by each part that could bound it: the device, its host, and the copies."""

    device_s: float
    host_s: float
    copy_s: float

    @property
    def update_s(self) -> float:
        """The slowest part, for they work side by side."""
        return max(self.device_s, self.host_s, self.copy_s)


def projected(work: Work, device: Device) -> Projection:
    """Times on a device whose kernels run one after the other."""
    products_s = work.flops / (device.product_rate * device.product_share)
    memory_s = work.kernel_bytes / device.memory_rate
    return Projection(
        device_s=products_s + memory_s + work.layer_steps * device.layer_step_s,
        host_s=work.kernels * device.kernel_s,
        copy_s=work.copied_bytes / device.copy_rate,
    )


def work_of(workload: Workload) -> Work:
    """Count the work of an update at the workload's GPU size."""
    network = build_network(workload.spec, workload.network, seed=1)
    flops = flops_per_decision(workload, network)
    few, more = (_counted(workload, network, rows) for rows in ROWS)
    unroll_bytes = (more.bytes - few.bytes) / (ROWS[1] - ROWS[0])
    fixed_bytes = few.bytes - ROWS[0] * unroll_bytes  # the optimizer's, and whatever else is done once
    microbatches = workload.gpu_microbatches
    steps = workload.unroll_length * microbatches
    batch = batch_from(_rows(workload, network, 1), oldest_version=0, device=CPU)
    decisions = workload.gpu_rows * workload.unroll_length
    layers = workload.network.core_layers if workload.network.core == "lstm" else 0
    return Work(
        decisions=decisions,
        flops=flops * decisions,
        kernel_bytes=fixed_bytes
        + workload.gpu_rows * unroll_bytes
        + decisions * layers * workload.network.core_size * GATE_VALUES * 2.0,
        copied_bytes=float(workload.gpu_rows * sum(tensor.nbytes for tensor in batch.tensors())),
        kernels=float(few.kernels * microbatches),
        layer_steps=steps * layers,
    )


def _counted(workload: Workload, network: Network, rows: int) -> Calls:
    """An update of `rows` unrolls in bfloat16, LSTMs as on a GPU."""
    config = dataclasses.replace(workload.config, batch_rows=rows, microbatches=1, max_policy_lag=10**6)
    placement = Placement(dtype=torch.bfloat16, device=CPU)
    unrolls = _rows(workload, network, rows)
    learner = Learner(local_updater(network, config, placement), layout_of(network), config)
    with lstm_as_one_call():
        learner.update(unrolls, budget_fraction=0.0)  # the first step makes the optimizer's state
        found = calls_of(lambda: learner.update(unrolls, budget_fraction=0.0))
    learner.close()
    return found


def _rows(workload: Workload, network: Network, rows: int) -> Unrolls:
    unrolls = rows_of(dataclasses.replace(workload, cpu_rows=rows, gpu_rows=rows), network)
    return in_ring(workload.unrolls(network), unrolls)[0]


def add_counts(report: Report, name: str, work: Work) -> None:
    """The demands of an update."""
    report.add(f"{name}: operations of products for a decision", work.flops / work.decisions / 1e6, "MFLOP")
    report.add(f"{name}: bytes of other kernels for a decision", work.kernel_bytes / work.decisions, "B")
    report.add(f"{name}: bytes copied to the device for a decision", work.copied_bytes / work.decisions, "B")
    report.add(f"{name}: kernels of an update", work.kernels, "kernels")


def add_times(report: Report, name: str, work: Work, device: Device) -> None:
    """Times on a device, and what follows from them."""
    found = projected(work, device)
    for word, seconds in (("device", found.device_s), ("host", found.host_s), ("copies", found.copy_s)):
        report.add(f"{name}, {device.name}: projected time of an update, {word}", 1e3 * seconds, "ms")
    report.add(f"{name}, {device.name}: projected rows/s", work.decisions / found.update_s, "1/s")
    share = work.flops / found.update_s / device.product_rate
    report.add(f"{name}, {device.name}: projected share of the matrix rate", share, "share")


def main() -> None:
    """Project the chosen workloads and print their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object in the last line")
    parser.add_argument("--only", default="", help="project the workloads whose name contains this")
    options = parser.parse_args()
    prepare_process()
    report = Report()
    for name, workload in WORKLOADS.items():
        if options.only.lower() in name.lower():
            work = work_of(workload)
            add_counts(report, name, work)
            for device in (H100, H200):
                add_times(report, name, work, device)
    report.print(sys.stdout, as_json=options.json)


if __name__ == "__main__":
    main()
