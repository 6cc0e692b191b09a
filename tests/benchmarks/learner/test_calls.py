"""What an update asks of torch and of its device, counted: each bound is a little above what was counted last."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

import agents.nets.lstm
from agents.learner.build import local_updater
from agents.learner.learner import Learner
from agents.learner.step.backend import Placement
from agents.nets.network import build_network
from agents.weights import layout_of
from benchmarks.learner import speed
from benchmarks.learner.calls import calls_of, reads_of

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


class OneCall(torch.autograd.Function):
    """Stands in for cuDNN: outputs of the form of an LSTM's, in one call forward and one back."""

    @staticmethod
    def forward(ctx, rows, state, size):  # type: ignore[no-untyped-def]
        ctx.shapes = rows.shape, state.shape
        return rows.new_zeros(len(rows), size), torch.zeros_like(state)

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        return gradients[0].new_zeros(ctx.shapes[0]), gradients[0].new_zeros(ctx.shapes[1]), None


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
def test_packed_stretches_leave_few_calls_and_one_look_at_the_resets(name: str, monkeypatch) -> None:
    def one_call(lstm: nn.LSTM, packed, state):  # type: ignore[no-untyped-def]
        outputs, last = OneCall.apply(packed.data, state[0], lstm.hidden_size)
        return packed._replace(data=outputs), (last, torch.zeros_like(last))

    learner = learner_of(name)
    monkeypatch.setattr(agents.nets.lstm, "runs_packed", lambda _: True)
    monkeypatch.setattr(nn.LSTM, "forward", one_call)
    learner.one()
    assert calls_of(learner.one).total <= MAX_CALLS_PACKED[name]
    assert MAX_CALLS_PACKED[name] * speed.WORKLOADS[name].gpu_microbatches <= MAX_CALLS_ON_GPU
    assert reads_of(learner.one)["cpu"] == 1
