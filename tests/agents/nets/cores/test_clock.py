"""The clock core: every decision by the number of its seat's decisions before it, wherever unrolls are cut."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.cores.clock import MAX_PARTS, ClockConfig, ClockCore, build_clock

ROWS, STEPS, FEATURES = 3, 12, 6


def build(decisions: int, *, seed: int | None = 0) -> ClockCore:
    core = build_clock(FEATURES, NetworkConfig(), torch.Generator(), options=ClockConfig(decisions))
    assert (core.num_features, core.core_size) == (FEATURES, 1)
    (block,) = core.blocks
    assert isinstance(block.module, ClockCore)
    if seed is not None:
        with torch.no_grad():
            for parameter in block.module.parameters():
                parameter.normal_(generator=torch.Generator().manual_seed(seed))
    return block.module


def draw() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, STEPS, FEATURES, generator=generator), torch.rand(ROWS, STEPS, generator=generator) < 0.2


def slowly(core: ClockCore, features: Tensor, resets: Tensor, counts: list[int]) -> tuple[Tensor, list[int]]:
    rows = []
    for row in range(ROWS):
        steps = []
        for step in range(features.shape[1]):
            counts[row] = 0 if resets[row, step] else counts[row]
            part = min(counts[row] * core.num_parts // core.decisions, core.num_parts - 1)
            steps.append(features[row, step] * (1.0 + core.scales[part]) + core.moves[part])
            counts[row] += 1
        rows.append(torch.stack(steps))
    return torch.stack(rows), counts


@pytest.mark.parametrize("decisions", [1, 5, 32, 100])
def test_each_decision_is_scaled_and_moved_by_its_part_of_the_episode(decisions: int) -> None:
    core, (features, resets) = build(decisions), draw()
    assert core.num_parts == min(decisions, MAX_PARTS)
    expected, counts = slowly(core, features, resets, [0, 3, 40])
    found, state = core(features, resets=resets, core=torch.tensor([[0.0], [3.0], [40.0]]))
    torch.testing.assert_close(found, expected)
    assert state.flatten().tolist() == counts


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_an_unroll_cut_in_two_is_the_whole(cut: int) -> None:
    core, (features, resets) = build(9), draw()
    start = torch.tensor([[0.0], [2.0], [7.0]])
    whole, last = core(features, resets=resets, core=start)
    first, state = core(features[:, :cut], resets=resets[:, :cut], core=start)
    second, final = core(features[:, cut:], resets=resets[:, cut:], core=state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    assert torch.equal(final, last)


def test_a_fresh_clock_changes_nothing() -> None:
    core, (features, resets) = build(9, seed=None), draw()
    torch.testing.assert_close(core(features, resets=resets, core=torch.zeros(ROWS, 1))[0], features, rtol=0, atol=0)
    torch.testing.assert_close(core(features, resets=None, core=torch.zeros(ROWS, 1))[0], features, rtol=0, atol=0)


def test_an_episode_has_a_decision() -> None:
    with pytest.raises(ValueError, match="decisions must be at least 1, got 0"):
        ClockConfig(0)
