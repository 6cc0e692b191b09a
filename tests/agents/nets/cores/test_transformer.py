"""The transformer core: how far it sees, what its state holds, and that unrolls may be cut anywhere."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from league.agents.nets.blocks import Core
from league.agents.nets.config import NetworkConfig
from league.agents.nets.cores.transformer import build_transformer

ROWS, STEPS, FEATURES, SIZE = 3, 12, 6, 8


def build(*, layers: int = 1, context: int = 3) -> Core:
    config = NetworkConfig(core_size=SIZE, core_layers=layers, core_context=context, attention_heads=2)
    return build_transformer(FEATURES, config, torch.Generator().manual_seed(0))


def run(
    core: Core, features: Tensor, *, resets: Tensor | None = None, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    state = torch.zeros(features.shape[0], core.core_size) if state is None else state
    for block in core.blocks:
        if "core" in block.side_inputs:
            features, state = block.module(features, resets=resets, core=state)
        else:
            features = block.module(features)
    return features, state


def draw(seed: int = 0) -> Tensor:
    return torch.randn(ROWS, STEPS, FEATURES, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("layers", "reach"), [(1, 3), (2, 6), (3, 9)])
def test_a_step_sees_exactly_as_far_back_as_its_layers_reach_and_never_ahead(layers: int, reach: int) -> None:
    core = build(layers=layers)
    features = draw()
    plain, _ = run(core, features)
    for step in range(STEPS):
        changed = features.clone()
        changed[:, step] += 1.0
        moved = (run(core, changed)[0] - plain).abs().amax(dim=(0, 2)) > 1e-6
        expected = [step <= t <= step + reach for t in range(STEPS)]
        assert moved.tolist() == expected


@pytest.mark.parametrize("context", [1, 3, 20])
@pytest.mark.parametrize("cut", [1, 5, 11])
def test_an_unroll_cut_in_two_is_the_whole(context: int, cut: int) -> None:
    core = build(layers=2, context=context)
    features = draw()
    resets = torch.zeros(ROWS, STEPS, dtype=torch.bool)
    resets[0, 4] = resets[1, 5] = resets[2, 11] = True
    whole, last = run(core, features, resets=resets)
    first, state = run(core, features[:, :cut], resets=resets[:, :cut])
    second, final = run(core, features[:, cut:], resets=resets[:, cut:], state=state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(final, last, rtol=1e-5, atol=1e-5)


def test_the_state_holds_the_last_steps_of_the_episode_oldest_first_and_zeros_else() -> None:
    core = build()
    features = draw()
    resets = torch.zeros(ROWS, STEPS, dtype=torch.bool)
    resets[1, STEPS - 2] = True
    _, state = run(core, features, resets=resets)
    given = core.blocks[0].module(features)
    assert state[:, :3].tolist() == [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    torch.testing.assert_close(state[0, 3:].view(3, SIZE), given[0, -3:])
    assert state[1, 3 : 3 + SIZE].eq(0).all()
    torch.testing.assert_close(state[1, 3 + SIZE :].view(2, SIZE), given[1, -2:])


def test_a_state_of_zeros_is_no_memory_at_all() -> None:
    core = build(context=4)
    features = draw()[:, :1]
    output, _ = run(core, features)
    alone, _ = run(core, features, resets=torch.ones(ROWS, 1, dtype=torch.bool), state=torch.ones(ROWS, core.core_size))
    torch.testing.assert_close(output, alone, rtol=0, atol=0)


def test_distance_alone_tells_steps_apart() -> None:
    """Equal steps in another order are another history."""
    core = build()
    features = draw()[:, :4]
    swapped = features[:, [1, 0, 2, 3]]
    assert not torch.allclose(run(core, features)[0][:, -1], run(core, swapped)[0][:, -1], atol=1e-6)


def test_each_layer_is_a_block_that_replaces_its_own_slice_only() -> None:
    core = build(layers=3)
    assert [block.name for block in core.blocks] == ["core_input", "core_0", "core_1", "core_2", "core_norm"]
    share = 3 * (SIZE + 1)
    assert core.core_size == 3 * share
    state = torch.rand(ROWS, core.core_size)
    for index in range(3):
        _, after = core.blocks[1 + index].module(torch.zeros(ROWS, 2, SIZE), resets=None, core=state)
        changed = (after != state).any(0)
        assert changed[index * share : (index + 1) * share].any()
        assert not changed[: index * share].any()
        assert not changed[(index + 1) * share :].any()
