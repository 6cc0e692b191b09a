"""The stack core: the features of the steps before beside those of each step, however unrolls are cut."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.cores.stack import StackConfig, StackCore, build_stack

ROWS, LENGTH, FEATURES = 4, 12, 3


def build(steps: int) -> StackCore:
    core = build_stack(FEATURES, NetworkConfig(), torch.Generator(), options=StackConfig(steps))
    assert (core.num_features, core.core_size) == ((1 + steps) * FEATURES, steps * FEATURES)
    (block,) = core.blocks
    assert isinstance(block.module, StackCore)
    return block.module


def draw() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(ROWS, LENGTH, FEATURES, generator=generator)
    return features, torch.rand(ROWS, LENGTH, generator=generator) < 0.25


def slowly(steps: int, features: Tensor, resets: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    rows, states = [], []
    for row in range(ROWS):
        past = [*state[row].view(steps, FEATURES)]
        outputs = []
        for step in range(features.shape[1]):
            past = [torch.zeros(FEATURES)] * steps if resets[row, step] else past
            outputs.append(torch.cat([features[row, step], *reversed(past)]))
            past = [*past[1:], features[row, step]]
        rows.append(torch.stack(outputs))
        states.append(torch.cat(past))
    return torch.stack(rows), torch.stack(states)


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_each_step_has_those_before_it_in_its_episode(steps: int) -> None:
    core, (features, resets) = build(steps), draw()
    start = torch.randn(ROWS, steps * FEATURES, generator=torch.Generator().manual_seed(2))
    found, state = core(features, resets=resets, core=start)
    expected, last = slowly(steps, features, resets, start)
    assert torch.equal(found, expected)
    assert torch.equal(state, last)
    found, state = core(features, resets=None, core=start)
    expected, last = slowly(steps, features, torch.zeros_like(resets), start)
    assert torch.equal(found, expected)
    assert torch.equal(state, last)


@pytest.mark.parametrize("cut", [1, 5, 11])
@pytest.mark.parametrize("steps", [1, 4])
def test_an_unroll_cut_in_two_is_the_whole(steps: int, cut: int) -> None:
    core, (features, resets) = build(steps), draw()
    start = torch.zeros(ROWS, steps * FEATURES)
    whole, last = core(features, resets=resets, core=start)
    first, state = core(features[:, :cut], resets=resets[:, :cut], core=start)
    second, final = core(features[:, cut:], resets=resets[:, cut:], core=state)
    assert torch.equal(torch.cat([first, second], dim=1), whole)
    assert torch.equal(final, last)


def test_there_is_an_earlier_step() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        StackConfig(0)
