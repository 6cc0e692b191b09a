"""An LSTM over packed stretches between resets, against the loop over all steps."""

from __future__ import annotations

import pytest
import torch

import league.agents.nets.cores.lstm
from league.agents.nets.cores.lstm import LSTMCore
from league.agents.nets.kernels.lstm_stretches import stretches_of

RESETS = {
    "some": lambda: torch.rand(5, 9, generator=torch.Generator().manual_seed(3)) < 0.3,
    "in every step": lambda: torch.ones(5, 9, dtype=torch.bool),
    "in the first step": lambda: torch.arange(9).expand(5, 9) == 0,
    "in the last step": lambda: torch.arange(9).expand(5, 9) == 8,
    "in one row": lambda: (torch.arange(9).expand(5, 9) == 4) & (torch.arange(5)[:, None] == 2),
}


def results(core: LSTMCore, resets: torch.Tensor) -> list[torch.Tensor]:
    """Outputs, state and all gradients."""
    generator = torch.Generator().manual_seed(7)
    features = torch.randn(5, 9, 6, generator=generator).requires_grad_()
    state = torch.randn(5, core.core_size, generator=generator).requires_grad_()
    core.zero_grad()
    outputs, after = core(features, resets=resets, core=state)
    weights = torch.randn(outputs.shape, generator=generator)
    ((outputs * weights).sum() + after.square().sum()).backward()
    gradients = [parameter.grad.clone() for parameter in core.parameters()]
    return [outputs.detach(), after.detach(), features.grad, state.grad, *gradients]


@pytest.mark.parametrize("kind", RESETS)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_packed_stretches_equal_the_loop_over_all_steps(kind: str, num_layers: int, monkeypatch) -> None:
    core = LSTMCore(6, 4, num_layers, torch.Generator().manual_seed(1))
    expected = results(core, RESETS[kind]())
    packed = []
    monkeypatch.setattr(league.agents.nets.cores.lstm, "runs_packed", lambda features: packed.append(features) or True)
    found = results(core, RESETS[kind]())
    assert len(packed) == 1
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_stretches_hold_every_step_once_and_continue_where_no_reset_is() -> None:
    resets = torch.tensor([[False, False, True, False], [True, False, False, False]])
    stretches = stretches_of(resets)
    assert sorted(stretches.order.tolist()) == list(range(8))
    assert stretches.sizes.tolist() == [3, 3, 1, 1]
    assert stretches.rows.tolist() == [1, 0, 0]
    assert stretches.carried.tolist() == [False, True, False]
    assert stretches.last.tolist() == [2, 0]


def test_packed_stretches_ask_the_lstm_once_whatever_the_resets(monkeypatch) -> None:
    monkeypatch.setattr(league.agents.nets.cores.lstm, "runs_packed", lambda _: True)
    core, calls = LSTMCore(6, 4, 3, torch.Generator().manual_seed(1)), []
    core.lstm.register_forward_hook(lambda *_: calls.append(1))
    results(core, RESETS["some"]())
    assert len(calls) == 1
