"""Two dense layers with ReLU between as one function: on a GPU the ReLU and its gradient cost no pass of their own.

The hidden features are the largest tensor of a transformer, and its kernels wait for memory. cuBLAS applies the ReLU
as it writes them. The gradient's product is masked, and summed for the bias, as it is written.

Shape letters: M rows, I inputs, O hidden features.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from league.agents.nets.kernels.gpu import learns_on_gpu

HIDDEN_MULTIPLE, INPUTS_MULTIPLE = 128, 64
"""Numbers of hidden features and of inputs that the kernel takes are multiples of these."""


def prefers_kernel(features: Tensor, *, num_hidden: int) -> bool:
    """True where `feed_forward` is faster than two layers: a GPU that learns in 16-bit numbers."""
    fits = num_hidden % HIDDEN_MULTIPLE == 0 and features.shape[-1] % INPUTS_MULTIPLE == 0
    return fits and learns_on_gpu(features)


@torch.library.custom_op("league::dense_relu", mutates_args=())
def dense_relu(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """relu(inputs @ weight.T + bias) [M, O] of inputs [M, I], weight [O, I] and bias [O]; it has no gradient."""
    output: Tensor = torch._addmm_activation(bias, inputs, weight.t())
    return output


@torch.library.custom_op("league::relu_product", mutates_args=())
def relu_product(gradient: Tensor, weight: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient behind a ReLU: gradient @ weight where the hidden features are positive, 0 elsewhere.

    Args:
      gradient: [M, I]; weight: [I, O]; hidden: [M, O]; all contiguous and of one dtype.
    Returns:
      [M, O], and the sum of its rows [O], at least in float32.
    """
    if gradient.is_cuda:
        from league.agents.nets.kernels import triton_kernels

        return triton_kernels.relu_product(gradient, weight, hidden)
    of_hidden = torch.where(hidden > 0, gradient @ weight, 0.0)
    return of_hidden, of_hidden.sum(0, dtype=torch.promote_types(gradient.dtype, torch.float32))


@dense_relu.register_fake
def _(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return inputs.new_empty(inputs.shape[0], weight.shape[0])


@relu_product.register_fake
def _(gradient: Tensor, weight: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    sums_dtype = torch.promote_types(gradient.dtype, torch.float32)
    return torch.empty_like(hidden), gradient.new_empty(weight.shape[1], dtype=sums_dtype)


class _FeedForward(torch.autograd.Function):
    """Both layers; biases stay in their own dtype, and so do their gradients."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, first: Tensor, first_bias: Tensor, second: Tensor, second_bias: Tensor
    ) -> Tensor:
        hidden = dense_relu(rows, first, first_bias.to(rows.dtype))
        ctx.save_for_backward(rows, first, second, hidden)
        return torch.addmm(second_bias.to(rows.dtype), hidden, second.t())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        rows, first, second, hidden = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        of_hidden, of_first_bias = relu_product(gradient, second, hidden)
        of_second_bias = gradient.sum(0, dtype=of_first_bias.dtype)
        return of_hidden @ first, of_hidden.t() @ rows, of_first_bias, gradient.t() @ hidden, of_second_bias


def feed_forward(inputs: Tensor, first: Tensor, first_bias: Tensor, second: Tensor, second_bias: Tensor) -> Tensor:
    """relu(inputs @ first.T + first_bias) @ second.T + second_bias, differentiable in all of them.

    Args:
      inputs: [..., I]; first: [O, I]; second: [I, O]; biases: [O] and [I]. The layers compute in the inputs' dtype.
    Returns:
      [..., I].
    """
    rows = inputs.reshape(-1, inputs.shape[-1])
    first, second = first.to(rows.dtype).contiguous(), second.to(rows.dtype).contiguous()
    with torch.autocast(rows.device.type, enabled=False):
        output: Tensor = _FeedForward.apply(rows, first, first_bias, second, second_bias)  # type: ignore[no-untyped-call]
    return output.view(inputs.shape)
