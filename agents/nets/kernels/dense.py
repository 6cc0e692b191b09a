"""Fully connected layers; float32 on a CPU runs in oneDNN, with product, bias and ReLU in one kernel, where that wins.

torch sends float32 products on a CPU to MKL, which runs an AMD core with AVX-512 at half of its speed. oneDNN, which
ships inside torch for bfloat16 and for compiled graphs, reaches full speed on every core. On other cores MKL is as fast
with large products and faster with small ones, and reads transposed matrices that oneDNN first copies: gradients go to
MKL there. Elsewhere, and where the build lacks oneDNN, the ordinary operators run. Results agree to rounding.

Shape letters: N rows, I inputs, O outputs.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_MIN_WORK = 1 << 20
"""Multiplications in float32 from which the fused kernel wins over a slow MKL: it repacks the weights in every call."""

_MIN_ROWS, _MAX_OUTPUTS = 1024, 256
"""Size of a float32 product with which it wins over a fast MKL, by the bias and ReLU that it adds as it writes."""

_ONEDNN: bool = torch.backends.mkldnn.is_available() and hasattr(  # type: ignore[no-untyped-call]
    torch.ops.mkldnn, "_linear_pointwise"
)

CPU_BFLOAT16: bool = _ONEDNN and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
"""True where the processor has the instructions (AVX-512) for fast products in bfloat16; elsewhere oneDNN refuses them,
and torch's own operators compute them slowly."""


def _is_intel() -> bool:
    """True if this machine's core is Intel's."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as cores:
            return "GenuineIntel" in cores.read(1024)  # the first core; a machine of many takes long to list them all
    except OSError:
        return "GenuineIntel" in platform.processor()


_FAST_MKL: bool = torch.backends.mkl.is_available() and (  # type: ignore[no-untyped-call]
    torch.backends.cpu.get_cpu_capability() != "AVX512" or _is_intel()
)
"""True where MKL runs at full speed: by the processor and not by the clock, so that equal runs on a machine are equal.
Of AVX-512 it uses half on a core that is not Intel's; where there is none it uses all that there is."""


def product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str = "none") -> Tensor:
    """activation(inputs @ weight.T + bias) [N, O], outside autograd.

    Args:
      inputs: [N, I]; weight: [O, I]; bias: [O] or None; all of one dtype and device.
      activation: "none" or "relu".
    """
    if prefers_fused(inputs, weight):
        return fused_product(_packed(inputs), _packed(weight), bias, activation=activation)
    output = nn.functional.linear(inputs, weight, bias)
    return output.relu_() if activation == "relu" else output


def fused_product(inputs: Tensor, weight: Tensor, bias: Tensor | None, *, activation: str) -> Tensor:
    """`product` by the fused kernel, where `prefers_fused` holds; inputs and weight are contiguous."""
    output: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, activation, [], "")
    return output


def prefers_fused(inputs: Tensor, weight: Tensor) -> bool:
    """True if the fused kernel multiplies inputs [N, I] by weight [O, I] fastest."""
    # An exported graph holds for any number of rows, and other programs do not have the fused kernel. A compiler
    # chooses its kernels itself.
    if not _ONEDNN or inputs.device.type != "cpu" or is_traced():
        return False
    if inputs.dtype != torch.float32:
        return inputs.dtype == torch.bfloat16 and CPU_BFLOAT16
    if _FAST_MKL:
        return inputs.shape[0] >= _MIN_ROWS and weight.shape[0] <= _MAX_OUTPUTS
    return inputs.shape[0] * weight.numel() >= _MIN_WORK


def is_traced() -> bool:
    """True while a network is exported or compiled."""
    return torch.compiler.is_exporting() or torch.compiler.is_compiling()


def _packed(matrix: Tensor) -> Tensor:
    """The matrix, copied if it is the transpose of a slice, on which the fused kernel is 500 times slower."""
    by_row = matrix.stride(1) == 1 and matrix.stride(0) >= matrix.shape[1]
    return matrix if by_row or matrix.t().is_contiguous() else matrix.t().contiguous().t()


def input_gradient(of_outputs: Tensor, weight: Tensor) -> Tensor:
    """of_outputs @ weight [N, I], outside autograd, from [N, O] and [O, I]."""
    if _FAST_MKL:
        return of_outputs @ weight
    return product(of_outputs, weight.t())


def weight_gradient(of_outputs: Tensor, inputs: Tensor) -> Tensor:
    """of_outputs.T @ inputs [O, I], outside autograd, from [N, O] and [N, I]."""
    if _FAST_MKL or of_outputs.dtype != torch.float32:
        return of_outputs.t() @ inputs  # dtypes other than float32 reach the fast kernels by themselves
    if inputs.shape[1] < of_outputs.shape[1]:
        return product(inputs.t(), of_outputs.t()).t()  # the kernel is faster with the wider operand as its weight
    return product(of_outputs.t(), inputs.t())


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
        of_inputs = input_gradient(gradient, weight) if ctx.needs_input_grad[0] else None
        return of_inputs, weight_gradient(gradient, inputs), gradient.sum(0), None


def dense(inputs: Tensor, weight: Tensor, bias: Tensor, *, activation: str = "none") -> Tensor:
    """activation(inputs @ weight.T + bias) [..., O] for inputs [..., I], differentiable; arguments as in `product`.

    The inputs are of the dtype in which the layer computes; weight and bias may be of another one.
    """
    rows = inputs.reshape(-1, inputs.shape[-1])
    output: Tensor
    if not torch.is_grad_enabled():
        output = product(rows, weight.to(rows.dtype), bias.to(rows.dtype), activation=activation)
    elif _ONEDNN and rows.dtype == torch.float32 and rows.device.type == "cpu" and not is_traced():
        output = _DenseFunction.apply(rows, weight, bias, activation)  # type: ignore[no-untyped-call]
    else:
        output = nn.functional.linear(rows, weight, bias)  # autocast casts the weight, once per context
        output = output.relu_() if activation == "relu" else output
    return output.view(*inputs.shape[:-1], -1)


class Dense(nn.Linear):
    """A linear layer with an optional ReLU; the same parameters as `nn.Linear`."""

    def __init__(self, num_inputs: int, num_outputs: int, *, relu: bool = False, device: str | None = None) -> None:
        super().__init__(num_inputs, num_outputs, device=device)
        self.activation = "relu" if relu else "none"

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., I] -> [..., O]; the inputs are of the dtype in which the layer computes."""
        return dense(inputs, self.weight, self.bias, activation=self.activation)
