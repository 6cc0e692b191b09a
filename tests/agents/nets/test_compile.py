"""Compiled networks: the same answers and gradients; what a compiler would unroll stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from league.agents.learner.build import build_learner
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network
from tests.agents.learner.learner_cases import BOARD_GAME, LSTM, MLP, batch_of, network_of, small_config, unrolls_of

TRANSFORMER = NetworkConfig(hidden=(16,), core="transformer", core_size=8, core_context=3)
GRAPHS = {"mlp": (MLP, 1), "lstm": (LSTM, 2), "transformer": (TRANSFORMER, 1)}
"""Network, and the graphs that it is compiled to: one before an LSTM, and one behind it."""


def graphs_of(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Let torch.compile trace whole graphs without making code of them; returns the functions that it was given."""
    compiled: list[object] = []
    plain = torch.compile

    def traced(function: Any, *, mode: str) -> Any:
        compiled.append(function)
        assert mode == "default"
        return plain(function, backend="aot_eager", fullgraph=True)

    monkeypatch.setattr(torch, "compile", traced)
    return compiled


def passed(network: Network) -> list[torch.Tensor]:
    """Logits, values, core and the gradient of a pass."""
    batch = batch_of(BOARD_GAME, network, rows=4, steps=5)
    assert batch.resets.any()
    network.zero_grad(set_to_none=True)
    output = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
    torch.autograd.backward(output.logits.square().sum() + output.values.sum())
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    return [output.logits.detach(), output.values.detach(), output.core.detach(), *gradients]


@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_compiled_network_answers_as_before(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = graphs_of(monkeypatch)
    config, count = GRAPHS[name]
    network = network_of(BOARD_GAME, config, policy_scale=30.0)
    expected = passed(network)
    network.compile(mode="default")
    assert len(compiled) == count
    found = passed(network)
    assert len(found) == len(expected) > 3
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_learner_with_a_compiled_network_makes_the_updates_of_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs_of(monkeypatch)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=12, steps=5)
    norms = []
    for mode in ("none", "default"):
        config = small_config(microbatches=3, compile_mode=mode)
        learner = build_learner(BOARD_GAME, LSTM, config, seed=1, dtype=torch.float32)
        norms.append([learner.update(unrolls, budget_fraction=0.0).gradient_norm for _ in range(2)])
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)
