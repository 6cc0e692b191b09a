"""Dense layers that follow one another as one function: a block of rows runs through all of them in a core's cache.

On a CPU in float32 a kernel of our own does that (`dense_chain.c`), where it can be compiled and the layers are small:
forward and backward pass of a network of 128-128 take two thirds of their time layer by layer, and Python's lock is
free meanwhile. Everywhere else each layer runs by itself (`dense.py`). Results agree to rounding.

Shape letters: N rows, I inputs, O outputs of the last layer, L layers.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from league.agents.nets.kernels.compiled import library
from league.agents.nets.kernels.dense import dense, is_traced

MAX_WEIGHT = 1 << 17
"""Largest weight, in numbers: the gain is a quarter or more below, since a block and all weights stay in the cache."""

MAX_LAYERS = 16
"""As in dense_chain.c."""


class DenseParameters(Protocol):
    """A dense layer: weight [O, I], bias [O], and the activation of `Dense`, "none" or "relu"."""

    @property
    def weight(self) -> Tensor: ...
    @property
    def bias(self) -> Tensor: ...
    @property
    def activation(self) -> str: ...


def dense_chain(inputs: Tensor, layers: Sequence[DenseParameters]) -> Tensor:
    """Outputs [..., O] of the layers one after the other for inputs [..., I], differentiable once."""
    if not takes(inputs, layers):
        for layer in layers:
            inputs = dense(inputs, layer.weight, layer.bias, activation=layer.activation)
        return inputs
    rows = inputs.reshape(-1, inputs.shape[-1]).contiguous()
    relus = tuple(layer.activation == "relu" for layer in layers)
    parameters = [parameter for layer in layers for parameter in (layer.weight, layer.bias)]
    if torch.is_grad_enabled():
        outputs: Tensor = _ChainFunction.apply(rows, relus, *parameters)  # type: ignore[no-untyped-call]
    else:
        outputs = _Call(rows, relus, parameters).forward()[-1]
    return outputs.view(*inputs.shape[:-1], outputs.shape[-1])


def takes(inputs: Tensor, layers: Sequence[DenseParameters]) -> bool:
    """True if the compiled kernel computes these layers."""
    return (
        len(layers) > 1
        and inputs.dtype == torch.float32
        and inputs.device.type == "cpu"
        and fits(layers)
        and not is_traced()
        and _kernel() is not None
    )


def fits(layers: Sequence[DenseParameters]) -> bool:
    """True for layers that are small enough, in float32 and in one piece of memory each."""
    weights = [layer.weight for layer in layers]
    return len(layers) <= MAX_LAYERS and all(
        weight.dtype == torch.float32 and weight.numel() <= MAX_WEIGHT and weight.is_contiguous() for weight in weights
    )


class _Call:
    """The arguments of one call of the kernel. rows: float32 [N, I]; parameters: weight and bias of each layer."""

    def __init__(self, rows: Tensor, relus: Sequence[bool], parameters: Sequence[Tensor]) -> None:
        kernel = _kernel()
        assert kernel is not None, "asked for without `takes`"
        self._kernel = kernel
        self._rows = rows
        self._weights = parameters[0::2]
        self._biases = parameters[1::2]
        self._relus = (ctypes.c_int * len(relus))(*relus)
        self._widths = (rows.shape[1], *(weight.shape[0] for weight in self._weights))
        self._sizes = (ctypes.c_long * len(self._widths))(*self._widths)

    def forward(self) -> list[Tensor]:
        """Outputs of every layer [N, width], rows of memory that holds more than them."""
        num_rows = self._rows.shape[0]
        row = self._kernel.league_row
        memory = [self._rows.new_empty(num_rows, row(width)) for width in self._widths[1:]]
        failed = self._kernel.league_chain_forward(
            *self._first(), _pointers(self._weights), _pointers(self._biases), self._relus, _pointers(memory)
        )
        if failed:
            raise MemoryError("dense layers, forward")
        return [outputs[:, :width] for outputs, width in zip(memory, self._widths[1:], strict=True)]

    def backward(
        self, outputs: Sequence[Tensor], gradient: Tensor, *, of_inputs: bool
    ) -> tuple[Tensor | None, list[Tensor]]:
        """Gradients of the rows [N, I], None unless asked for, and of weight and bias of each layer.

        Args:
          outputs: as `forward` gave them. gradient: [N, O], of the last ones.
        """
        input_gradient = torch.empty_like(self._rows) if of_inputs else None
        weight_gradients = [torch.zeros_like(weight) for weight in self._weights]
        bias_gradients = [torch.zeros_like(bias) for bias in self._biases]
        gradient = gradient.contiguous()
        failed = self._kernel.league_chain_backward(
            *self._first(),
            _pointers(self._weights),
            self._relus,
            _pointers(outputs),
            _pointer(gradient),
            _pointers(weight_gradients),
            _pointers(bias_gradients),
            None if input_gradient is None else _pointer(input_gradient),
        )
        if failed:
            raise MemoryError("dense layers, backward")
        pairs = zip(weight_gradients, bias_gradients, strict=True)
        return input_gradient, [gradient for pair in pairs for gradient in pair]

    def _first(self) -> tuple[Any, ...]:
        """The arguments that both passes begin with."""
        return _pointer(self._rows), self._rows.shape[0], len(self._weights), self._sizes


class _ChainFunction(torch.autograd.Function):
    """The layers with their gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, relus: tuple[bool, ...], *parameters: Tensor) -> Tensor:
        outputs = _Call(rows, relus, parameters).forward()
        ctx.relus = relus
        ctx.save_for_backward(rows, *parameters, *outputs)
        return outputs[-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, *saved = ctx.saved_tensors
        parameters, outputs = saved[: 2 * len(ctx.relus)], saved[2 * len(ctx.relus) :]
        call = _Call(rows, ctx.relus, parameters)
        of_rows, others = call.backward(outputs, gradients[0], of_inputs=ctx.needs_input_grad[0])
        return of_rows, None, *others


def _pointer(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _pointers(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


@functools.cache
def _kernel() -> ctypes.CDLL | None:
    """The compiled functions; None if there are none."""
    kernel = library("dense_chain")
    return None if kernel is None else declared(kernel)


def declared(kernel: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions' arguments."""
    long, pointer = ctypes.c_long, ctypes.c_void_p
    kernel.league_row.argtypes, kernel.league_row.restype = [long], long
    kernel.league_chain_forward.argtypes = [pointer, long, long, *[pointer] * 5]
    kernel.league_chain_backward.argtypes = [pointer, long, long, *[pointer] * 8]
    return kernel
