"""The projected time of an update: its counts against an update of more rows, its arithmetic by hand."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.learner.projection import Device, Projection, Work, _counted, projected, work_of
from benchmarks.learner.speed import WORKLOADS
from league.agents.nets.network import build_network

MLP = WORKLOADS["MLP 128-128"]


def test_work_grows_with_the_rows_and_the_optimizers_share_does_not() -> None:
    small, large = (work_of(dataclasses.replace(MLP, gpu_rows=rows)) for rows in (4, 8))
    counted = _counted(MLP, build_network(MLP.spec, MLP.network, seed=1), 8)
    assert large.kernel_bytes == pytest.approx(counted.bytes, rel=0.02)
    assert large.kernels == counted.kernels
    assert large.kernel_bytes < 2 * small.kernel_bytes
    assert (large.flops, large.copied_bytes) == (2 * small.flops, 2 * small.copied_bytes)
    assert large.layer_steps == 0


def test_microbatches_repeat_kernels_and_recurrent_steps() -> None:
    narrow = {"hidden": (16,), "core_size": 8}
    lstm = WORKLOADS["LSTM-4096"]
    lstm = dataclasses.replace(lstm, network=dataclasses.replace(lstm.network, **narrow), gpu_rows=8)
    one, two = (work_of(dataclasses.replace(lstm, gpu_microbatches=number)) for number in (1, 2))
    assert two.kernels == 2 * one.kernels
    assert (one.layer_steps, two.layer_steps) == (16, 32)


def test_the_slowest_of_device_host_and_copies_is_the_update() -> None:
    work = Work(decisions=10, flops=8e12, kernel_bytes=2e12, copied_bytes=3e9, kernels=1_000, layer_steps=100)
    device = Device("made up", 4e12, 0.5, 1e12, 1e9, 1e-3, 1e-2)
    assert projected(work, device) == Projection(device_s=4.0 + 2.0 + 1.0, host_s=1.0, copy_s=3.0)
    assert projected(work, device).update_s == 7.0
    assert projected(work, dataclasses.replace(device, kernel_s=1.0)).update_s == 1_000.0
