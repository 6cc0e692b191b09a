"""Fully connected layers, on a CPU through oneDNN: product, bias and ReLU in one kernel, forward and backward.

torch sends float32 products on a CPU to MKL, which runs at half of an AMD core's speed; oneDNN, which ships inside torch
for bfloat16 and for compiled graphs, runs at its full speed there and no slower elsewhere. Where the build lacks it, on
other devices and for other dtypes the ordinary operators run; results agree to rounding.

Shape letters: N rows, I inputs, O outputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_ONEDNN_DTYPES = (torch.float32, torch.bfloat16)
_MIN_ROWS = 8
"""Below this many rows laying out the weights for oneDNN costs more than it gains."""


def _has_onednn() -> bool:
    """Whether this build of torch has the fused kernel."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


_ONEDNN = _has_onednn()


def product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str = "none") -> Tensor:
    """activation(inputs @ weight.T + bias) [N, O], outside autograd.

    Args:
      inputs: [N, I]; weight: [O, I]; bias: [O] or None; all of one dtype and device.
      activation: "none" or "relu".
    """
    if (
        _ONEDNN
        and inputs.shape[0] >= _MIN_ROWS
        and inputs.device.type == "cpu"
        and inputs.dtype in _ONEDNN_DTYPES
    ):
        fused: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, activation, [], "")
        return fused
    output = nn.functional.linear(inputs, weight, bias)
    return output.relu_() if activation == "relu" else output


class _DenseFunction(torch.autograd.Function):
    """`product` with its gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
        output = product(inputs, weight, bias, activation=activation)
        ctx.activation = activation
        ctx.save_for_backward(inputs, weight, output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        inputs, weight, output = ctx.saved_tensors
        gradient = gradients[0]
        if ctx.activation == "relu":
            gradient = torch.ops.aten.threshold_backward(gradient, output, 0)
        of_inputs = product(gradient, weight.t()) if ctx.needs_input_grad[0] else None
        return of_inputs, product(gradient.t(), inputs.t()), gradient.sum(0), None


class Dense(nn.Linear):
    """A linear layer, followed by ReLU where asked for; the same parameters as `nn.Linear`."""

    def __init__(self, num_inputs: int, num_outputs: int, *, relu: bool = False, device: str | None = None) -> None:
        super().__init__(num_inputs, num_outputs, device=device)
        self.activation = "relu" if relu else "none"

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O] in the dtype of the inputs."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        weight, bias = self.weight.to(rows.dtype), self.bias.to(rows.dtype)
        output: Tensor
        if torch.is_grad_enabled():
            output = _DenseFunction.apply(rows, weight, bias, self.activation)
        else:
            output = product(rows, weight, bias, activation=self.activation)
        return output.view(*inputs.shape[:-1], -1)
