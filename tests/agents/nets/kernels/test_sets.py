"""Attention within sets as one operator, against torch's own; its kernel has `benchmarks.learner.kernels`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from league.agents.nets.attention import Attention
from league.agents.nets.kernels import sets

ROWS, PLACES, HEADS, WIDTH = 4, 5, 2, 8


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Queries, keys and values, and presence: nothing in the first row, everything in the second."""
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(ROWS, PLACES, 3 * WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    present = torch.rand(ROWS, PLACES, generator=generator) < 0.6
    present[0], present[1] = False, True
    return qkv, present


def by_torch(qkv: Tensor, present: Tensor) -> Tensor:
    """The same by torch's own attention; NaN where nothing is present."""
    parts = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    gathered = nn.functional.scaled_dot_product_attention(*parts, attn_mask=present[:, None, None])
    return gathered.transpose(1, 2).flatten(2)


def test_attention_and_its_gradient_are_those_of_torch() -> None:
    qkv, present = inputs()
    mine, theirs = qkv.clone().requires_grad_(), qkv[1:].clone().requires_grad_()
    gathered, expected = sets.attend(mine, present, HEADS)[0], by_torch(theirs, present[1:])
    torch.testing.assert_close(gathered[1:], expected)
    assert not gathered[0].any()
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (gathered[1:] * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(mine.grad[1:], theirs.grad)
    assert not mine.grad[0].any()
    assert torch.autograd.gradcheck(lambda x: sets.attend(x, present, HEADS)[0], (mine,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_operators_keep_torchs_rules(dtype: torch.dtype) -> None:
    qkv, present = inputs(dtype)
    torch.library.opcheck(sets.attend, (qkv.clone().requires_grad_(), present, HEADS))
    gathered, log_sums = sets.attend(qkv, present, HEADS)
    torch.library.opcheck(sets.attend_backward, (torch.ones_like(gathered), qkv, present, log_sums, HEADS))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_layer_attends_within_sets_as_by_scores(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = Attention(WIDTH, HEADS, torch.Generator().manual_seed(2)).double()
    features, present = inputs()[0][..., :WIDTH].clone().requires_grad_(), inputs()[1]
    results = []
    for uses_kernel in (False, True):
        monkeypatch.setattr(sets, "prefers_kernel", lambda *_, is_used=uses_kernel, **__: is_used)
        run = torch.compile(attention.within, backend="aot_eager", fullgraph=True) if compiled else attention.within
        gathered = run(features, present)[1:]
        results.append([gathered, *torch.autograd.grad(gathered.square().sum(), [features, *attention.parameters()])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_the_kernel_is_for_small_sets_learnt_from_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    features, meta = torch.zeros(1, dtype=torch.bfloat16), torch.device("meta")
    monkeypatch.setattr(sets, "learns_on_gpu", lambda given: given.device == meta)
    there = features.to(meta)
    assert sets.prefers_kernel(there, places=128, head_width=64)
    assert not sets.prefers_kernel(there, places=129, head_width=64)
    assert not sets.prefers_kernel(there, places=128, head_width=128)
    assert not sets.prefers_kernel(features, places=128, head_width=64)
