"""Two layers with ReLU between as one function, against the layers; its kernel has `benchmarks.learner.kernels`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from league.agents.nets.attention import FeedForward
from league.agents.nets.kernels import feed_forward

ROWS, WIDTH, HIDDEN = 6, 3, 12


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("compiled", [False, True])
def test_both_layers_and_their_gradients_are_those_of_autograd(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = FeedForward(WIDTH, torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        layers.first.bias.copy_(normal(HIDDEN, seed=1))
        layers.second.bias.copy_(normal(WIDTH, seed=2))
    features = normal(2, ROWS, WIDTH, seed=3).requires_grad_()
    results = []
    for uses_kernel in (False, True):
        monkeypatch.setattr(feed_forward, "prefers_kernel", lambda *_, is_used=uses_kernel, **__: is_used)
        run = torch.compile(layers, backend="aot_eager", fullgraph=True) if compiled else layers
        output = run(features)
        results.append([output, *torch.autograd.grad(output.square().sum(), [features, *layers.parameters()])])
    assert (results[0][1] != 0).any()
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_biases_keep_their_dtype_in_a_16_bit_pass() -> None:
    weights = [
        normal(HIDDEN, WIDTH, seed=1),
        normal(HIDDEN, seed=2),
        normal(WIDTH, HIDDEN, seed=3),
        normal(WIDTH, seed=4),
    ]
    leaves = [weight.float().requires_grad_() for weight in weights]
    features = normal(ROWS, WIDTH, seed=0, dtype=torch.bfloat16)
    output = feed_forward.feed_forward(features, *leaves)
    assert output.dtype == torch.bfloat16
    exact = torch.relu(features.double() @ weights[0].T + weights[1]) @ weights[2].T + weights[3]
    assert (output.double() - exact).norm() / exact.norm() < 0.02
    output.sum().backward()
    assert [leaf.grad.dtype for leaf in leaves] == [torch.float32] * 4
    torch.testing.assert_close(leaves[3].grad, torch.full((WIDTH,), float(ROWS)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_operators_keep_torchs_rules(dtype: torch.dtype) -> None:
    rows, first, bias = (normal(*shape, seed=5, dtype=dtype) for shape in ((ROWS, WIDTH), (HIDDEN, WIDTH), (HIDDEN,)))
    torch.library.opcheck(feed_forward.dense_relu, (rows, first, bias))
    hidden = feed_forward.dense_relu(rows, first, bias)
    assert (hidden == 0).any() and (hidden > 0).any()
    torch.library.opcheck(
        feed_forward.relu_product, (normal(ROWS, WIDTH, seed=6, dtype=dtype), first.t().contiguous(), hidden)
    )


def test_sums_of_the_gradient_leave_out_what_the_relu_stopped() -> None:
    gradient, weight = normal(ROWS, WIDTH, seed=7), normal(WIDTH, HIDDEN, seed=8)
    hidden = torch.relu(normal(ROWS, HIDDEN, seed=9))
    of_hidden, sums = feed_forward.relu_product(gradient, weight, hidden)
    for row in range(ROWS):
        for column in range(HIDDEN):
            expected = float(gradient[row] @ weight[:, column]) if hidden[row, column] > 0 else 0.0
            assert float(of_hidden[row, column]) == pytest.approx(expected)
    torch.testing.assert_close(sums, of_hidden.sum(0))
