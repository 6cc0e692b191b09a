"""What an update asks of torch and of its device, counted: each bound is a little above what was counted last."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from benchmarks.learner import speed
from benchmarks.learner.calls import calls_of, lstm_as_one_call, reads_of
from league.agents.learner.build import local_updater
from league.agents.learner.learner import Learner
from league.agents.learner.step.backend import Placement
from league.agents.nets.network import build_network
from league.agents.weights import layout_of

MAX_CALLS = {
    "MLP 128-128": 115,
    "LSTM-1024": 1_200,
    "entity transformer + deep LSTM + autoregressive head": 12_500,
}
"""With the loop over all steps of an LSTM, which runs on a CPU."""

MAX_CALLS_PACKED = {"LSTM-1024": 300, "entity transformer + deep LSTM + autoregressive head": 1_400}
"""In a microbatch, beside the one call of the LSTM and its gradient, which a GPU hands to cuDNN."""

MAX_CALLS_ON_GPU = 6_000
"""In a whole update."""


def learner_of(name: str) -> Learner:
    """A learner of a narrow network of that form: widths do not change the number of calls."""
    workload = speed.WORKLOADS[name]
    sizes = {"hidden": tuple(16 for _ in workload.network.hidden), "core_size": 8, "entity_size": 16, "head_size": 16}
    workload = dataclasses.replace(workload, network=dataclasses.replace(workload.network, **sizes), cpu_rows=2)
    network, config = build_network(workload.spec, workload.network, seed=1), workload.config
    placement = Placement(dtype=torch.float32, device=torch.device("cpu"))
    learner = Learner(local_updater(network, config, placement), layout_of(network), config)
    unrolls = speed.rows_of(workload, network)
    learner.one = lambda: learner.update(unrolls, budget_fraction=0.0)  # type: ignore[attr-defined]
    return learner


@pytest.mark.parametrize("name", MAX_CALLS)
def test_an_update_makes_no_more_calls_and_reads_its_device_once(name: str) -> None:
    learner = learner_of(name)
    learner.one()  # the first step makes the optimizer's state
    assert calls_of(learner.one).total <= MAX_CALLS[name]
    asks_for_resets = {"__bool__": 1} if "LSTM" in name else {}  # on a CPU alone
    assert reads_of(learner.one) == {"tolist": 1, **asks_for_resets}


@pytest.mark.parametrize("name", MAX_CALLS_PACKED)
def test_packed_stretches_leave_few_calls_and_read_nothing_back(name: str) -> None:
    learner = learner_of(name)
    with lstm_as_one_call():
        learner.one()
        assert calls_of(learner.one).total <= MAX_CALLS_PACKED[name]
        assert reads_of(learner.one)["cpu"] == 0
    assert MAX_CALLS_PACKED[name] * speed.WORKLOADS[name].gpu_microbatches <= MAX_CALLS_ON_GPU


def test_bytes_are_those_of_kernels_that_are_no_products() -> None:
    left, right = torch.ones(8, 4), torch.ones(4, 2)
    calls = calls_of(lambda: (left @ right).view(16).add_(1.0))
    assert (calls.total, calls.kernels) == (3, 2)
    assert calls.bytes == 2 * 16 * 4
