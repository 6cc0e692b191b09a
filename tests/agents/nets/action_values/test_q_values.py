"""The head q_values: dueling over the legal actions alone, a nearly greedy policy, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from tests.agents.learner.learner_cases import BOARD_GAME, COMMANDS, CONTROL, network_of

PLAIN = NetworkConfig(hidden=(16,), head={"kind": "q_values", "epsilon": 0.2})
OBS = {"board": torch.rand(50, 6) < 0.4, "clock": torch.randn(50)}
MASK = torch.rand(50, 5) < 0.5
MASK[:, 2] = True


def test_the_mean_advantage_is_over_legal_actions_alone() -> None:
    network = network_of(BOARD_GAME, PLAIN)
    output = network.step(OBS, action_mask=MASK)
    legal_mean = torch.where(MASK, output.logits, 0.0).sum(-1) / MASK.sum(-1)
    torch.testing.assert_close(legal_mean, torch.zeros(50), atol=1e-5, rtol=0)
    values = network.head.action_values(output.logits, output.values)  # type: ignore[attr-defined]
    torch.testing.assert_close(torch.where(MASK, values, 0.0).sum(-1) / MASK.sum(-1), output.values)
    assert (values[~MASK] < -1e8).all() and MASK.gather(1, values.argmax(-1, keepdim=True)).all()


def test_without_dueling_the_outputs_are_the_values() -> None:
    network = network_of(BOARD_GAME, NetworkConfig(hidden=(16,), head={"kind": "q_values", "dueling": False}))
    output = network.step(OBS, action_mask=MASK)
    values = network.head.action_values(output.logits, output.values)  # type: ignore[attr-defined]
    assert torch.equal(values, output.logits)


def test_it_samples_the_probabilities_that_it_tells() -> None:
    head = network_of(BOARD_GAME, PLAIN).head
    output = network_of(BOARD_GAME, PLAIN).step(OBS, action_mask=MASK)
    probs = head.probabilities(output.logits)
    assert probs is not None
    best = output.logits.argmax(-1)
    expected = torch.where(MASK, 0.2 / MASK.sum(-1, keepdim=True), 0.0)
    expected[torch.arange(50), best] += 0.8
    torch.testing.assert_close(probs, expected)
    uniforms = (torch.arange(1000.0) + 0.5) / 1000.0
    for row in range(5):
        rows = output.logits[row].expand(1000, -1)
        actions, log_probs = head.sample(rows, uniforms[:, None])
        counts = np.bincount(actions.numpy(), minlength=5) / 1000.0
        np.testing.assert_allclose(counts, expected[row].numpy(), atol=2e-3)
        torch.testing.assert_close(log_probs, head.log_prob(rows, actions))
    assert torch.equal(head.mode(output.logits), best)
    values = torch.where(MASK, head.action_values(output.logits, output.values), 0.0)  # type: ignore[attr-defined]
    expectation = head.expected_values(output.logits, output.values)  # type: ignore[attr-defined]
    torch.testing.assert_close(expectation, (expected * values).sum(-1))
    assert head.log_prob(torch.full((1, 5), torch.nan), torch.zeros(1, dtype=torch.int64)).isnan().all()


@pytest.mark.parametrize(("game", "kind"), [(CONTROL, "box"), (COMMANDS, "multi_categorical")])
def test_other_kinds_of_action_are_refused(game, kind: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"head: q_values has a value for each numbered action, the game takes {kind}"):
        build_network(game, NetworkConfig(hidden=(16,), head="q_values"), seed=0)
    with pytest.raises(ValueError, match=r"network\.head\.epsilon: 2\.0 is not in \[0, 1\]"):
        build_network(BOARD_GAME, NetworkConfig(head={"kind": "q_values", "epsilon": 2.0}), seed=0)
