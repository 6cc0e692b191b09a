"""Dense layers and the LSTM scan against torch's own operators, at sizes that use the fast kernels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from league.agents.nets.kernels import dense as dense_module
from league.agents.nets.kernels.dense import Dense, product
from league.agents.nets.kernels.lstm_scan import lstm_scan

ROWS = 1024


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def filled(num_inputs: int, num_outputs: int, *, relu: bool) -> Dense:
    layer = Dense(num_inputs, num_outputs, relu=relu)
    with torch.no_grad():
        layer.weight.copy_(normal(num_outputs, num_inputs, seed=1) / num_inputs**0.5)
        layer.bias.copy_(normal(num_outputs, seed=2))
    return layer


def reference(layer: Dense, inputs: Tensor, *, relu: bool) -> tuple[Tensor, list[Tensor]]:
    """Output and gradients (inputs, weight, bias) of sum(output ** 2) in float64, by torch's own operators."""
    leaves = [t.detach().double().requires_grad_() for t in (inputs, layer.weight, layer.bias)]
    output = nn.functional.linear(*leaves)
    output = output.relu() if relu else output
    return output.detach(), list(torch.autograd.grad(output.square().sum(), leaves))


def assert_near(actual: Tensor, expected: Tensor, *, tolerance: float) -> None:
    error = (actual.double() - expected).abs().max() / expected.abs().max()
    assert error < tolerance, f"off by {error:.1e} of the largest value"


@pytest.mark.parametrize(("onednn", "fast_mkl"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize(("num_inputs", "num_outputs"), [(84, 128), (128, 84), (128, 3), (5, 7)])
def test_a_dense_layer_and_its_gradient_equal_linear_and_relu(
    monkeypatch: pytest.MonkeyPatch, onednn: bool, fast_mkl: bool, relu: bool, num_inputs: int, num_outputs: int
) -> None:
    monkeypatch.setattr(dense_module, "_ONEDNN", dense_module._ONEDNN and onednn)
    monkeypatch.setattr(dense_module, "_FAST_MKL", fast_mkl)
    layer = filled(num_inputs, num_outputs, relu=relu)
    inputs = normal(ROWS, num_inputs).requires_grad_()
    expected, gradients = reference(layer, inputs, relu=relu)
    output = layer(inputs.view(8, -1, num_inputs))
    assert output.shape == (8, ROWS // 8, num_outputs)
    assert_near(output.view(ROWS, -1), expected, tolerance=2e-6)
    output.square().sum().backward()
    for leaf, gradient in zip((inputs, layer.weight, layer.bias), gradients, strict=True):
        assert leaf.grad is not None
        assert_near(leaf.grad, gradient, tolerance=2e-6)
    with torch.inference_mode():
        assert_near(layer(inputs.detach()), expected, tolerance=2e-6)


@pytest.mark.parametrize("instructions", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_bfloat16_inputs_compute_in_bfloat16_whatever_the_weights_are(
    monkeypatch: pytest.MonkeyPatch, relu: bool, instructions: bool
) -> None:
    monkeypatch.setattr(dense_module, "CPU_BFLOAT16", dense_module.CPU_BFLOAT16 and instructions)
    layer = filled(64, 32, relu=relu)
    inputs = normal(ROWS, 64)
    expected, gradients = reference(layer, inputs, relu=relu)
    with torch.inference_mode():
        acted = layer(inputs.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        learned = layer(inputs.bfloat16())
    learned.float().square().sum().backward()
    assert acted.dtype == learned.dtype == torch.bfloat16
    assert_near(acted, expected, tolerance=0.02)
    torch.testing.assert_close(acted, learned.detach())
    assert layer.weight.grad is not None
    assert_near(layer.weight.grad, gradients[1], tolerance=0.02)


def test_the_fast_kernel_never_meets_the_transpose_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers right and takes 500 times as long; slices are what blocks of two halves are made of."""
    met = []

    def recording(inputs: Tensor, weight: Tensor, bias: Tensor | None, *rest: object) -> Tensor:
        met.extend((inputs, weight))
        return nn.functional.linear(inputs, weight, bias)

    monkeypatch.setattr(dense_module, "_ONEDNN", True)
    monkeypatch.setattr(dense_module, "_FAST_MKL", False)
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", recording, raising=False)
    layer = filled(64, 128, relu=False)
    wide = normal(ROWS, 300)
    sliced = wide[:, 3:67].requires_grad_()
    layer(sliced)[:, :70].square().sum().backward()
    assert len(met) == 6
    assert all(matrix.stride(1) == 1 or matrix.t().is_contiguous() for matrix in met)
    exact = filled(64, 128, relu=False)
    nn.functional.linear(wide[:, 3:67], exact.weight, exact.bias)[:, :70].square().sum().backward()
    assert layer.weight.grad is not None
    assert exact.weight.grad is not None
    assert_near(layer.weight.grad, exact.weight.grad.double(), tolerance=2e-6)


@pytest.mark.parametrize("fast_mkl", [True, False])
def test_who_multiplies_gradients_depends_on_the_maker_of_the_core(
    monkeypatch: pytest.MonkeyPatch, fast_mkl: bool
) -> None:
    """On an Intel core the fused kernel runs the layer alone, and MKL its gradients; elsewhere it runs both."""
    calls = []

    def counting(inputs: Tensor, weight: Tensor, bias: Tensor | None, *rest: object) -> Tensor:
        calls.append(bias is not None)
        return nn.functional.linear(inputs, weight, bias)

    monkeypatch.setattr(dense_module, "_ONEDNN", True)
    monkeypatch.setattr(dense_module, "_FAST_MKL", fast_mkl)
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", counting, raising=False)
    inputs = normal(ROWS, 64).requires_grad_()
    filled(64, 128, relu=False)(inputs).sum().backward()
    assert calls == ([True] if fast_mkl else [True, False, False])


def test_one_row_and_no_row_pass_through() -> None:
    layer = filled(16, 8, relu=True)
    assert layer(torch.zeros(1, 16)).shape == (1, 8)
    assert product(torch.zeros(0, 16), layer.weight.detach()).shape == (0, 8)


def test_the_gradient_of_the_lstm_scan_equals_autograds() -> None:
    rows, steps, size = 64, 6, 64
    keep = torch.rand(rows, steps, generator=torch.Generator().manual_seed(9)) > 0.2
    leaves = [normal(rows, steps, 4 * size), normal(4 * size, size, seed=1) / 8.0, normal(2, rows, size, seed=2)]
    ours = [leaf.clone().requires_grad_() for leaf in leaves]
    outputs, state = lstm_scan(*ours, keep)
    ((outputs * normal(rows, steps, size, seed=3)).sum() + state.square().sum()).backward()

    theirs = [leaf.double().requires_grad_() for leaf in leaves]
    hidden, cell = theirs[2].unbind()
    collected = []
    for t in range(steps):
        hidden, cell = hidden * keep[:, t, None], cell * keep[:, t, None]
        i, f, g, o = (theirs[0][:, t] + hidden @ theirs[1].t()).chunk(4, dim=-1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        collected.append(hidden)
    expected = torch.stack(collected, 1)
    ((expected * normal(rows, steps, size, seed=3)).sum() + hidden.square().sum() + cell.square().sum()).backward()

    assert_near(outputs.detach(), expected.detach(), tolerance=2e-6)
    assert_near(state.detach(), torch.stack([hidden, cell]).detach(), tolerance=2e-6)
    for our, their in zip(ours, theirs, strict=True):
        assert our.grad is not None
        assert their.grad is not None
        assert_near(our.grad, their.grad, tolerance=5e-6)
    torch.testing.assert_close([our.detach() for our in ours], leaves, rtol=0, atol=0)


@pytest.mark.parametrize(("rows", "steps"), [(1, 5), (5, 1)])
def test_the_lstm_scan_leaves_its_inputs_alone_whatever_their_layout(rows: int, steps: int) -> None:
    inputs = normal(rows, steps, 16)
    kept = inputs.clone()
    lstm_scan(inputs, normal(16, 4, seed=1), torch.zeros(2, rows, 4), torch.ones(rows, steps, dtype=torch.bool))
    torch.testing.assert_close(inputs, kept, rtol=0, atol=0)
