"""Operations of traced networks in numpy: short ones as expressions, longer ones as functions of an exported file.

Names and arguments are those of torch's core operations; the functions' own text goes into the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

EXPRESSIONS: Mapping[str, str] = {
    "_log_softmax": "log_softmax({self}, {dim})",
    "_softmax": "np.exp(log_softmax({self}, {dim}))",
    "_to_copy": "np.asarray({self}, {dtype})",
    "abs": "np.abs({self})",
    "add": "{self} + {other}",
    "addmm": "{self} + {mat1} @ {mat2}",
    "alias": "{self}",
    "amax": "np.max({self}, axis=tuple({dim}), keepdims={keepdim})",
    "any": "np.any({self}, axis={dim}, keepdims={keepdim})",
    "arange": "np.arange({start}, {end}, {step}, dtype={dtype})",
    "argmax": "np.argmax({self}, axis={dim}, keepdims={keepdim})",
    "bitwise_and": "{self} & {other}",
    "bmm": "{self} @ {mat2}",
    "cat": "np.concatenate({tensors}, axis={dim})",
    "clamp": "np.clip({self}, {min}, {max})",
    "clone": "{self}",
    "constant_pad_nd": "padded({self}, {pad}, {value})",
    "convolution": "convolution({input}, {weight}, {bias}, {stride}, {padding}, {dilation}, {groups})",
    "cos": "np.cos({self})",
    "div": "{self} / {other}",
    "div.Tensor_mode": "{self} // {other} if {rounding_mode} == 'floor' else np.trunc({self} / {other})",
    "elu": "np.where({self} > 0, {self}, {alpha} * np.expm1(np.minimum({self}, 0)))",
    "embedding": "{weight}[{indices}]",
    "eq": "{self} == {other}",
    "exp": "np.exp({self})",
    "expand": "expanded({self}, {size})",
    "full": "np.full({size}, {fill_value}, {dtype})",
    "full_like": "np.full_like({self}, {fill_value}, dtype={dtype})",
    "gather": "np.take_along_axis({self}, {index}, {dim})",
    "ge": "{self} >= {other}",
    "gt": "{self} > {other}",
    "index": "{self}[tuple(slice(None) if each is None else each for each in {indices})]",
    "le": "{self} <= {other}",
    "log": "np.log({self})",
    "log1p": "np.log1p({self})",
    "logical_and": "np.logical_and({self}, {other})",
    "logical_not": "np.logical_not({self})",
    "logical_or": "np.logical_or({self}, {other})",
    "lt": "{self} < {other}",
    "max_pool2d_with_indices": "max_pool({self}, {kernel_size}, {stride}, {padding})",
    "maximum": "np.maximum({self}, {other})",
    "mean": "np.mean({self}, axis=tuple({dim}), keepdims={keepdim})",
    "mm": "{self} @ {mat2}",
    "mul": "{self} * {other}",
    "native_layer_norm": "layer_norm({input}, {normalized_shape}, {weight}, {bias}, {eps})",
    "ne": "{self} != {other}",
    "neg": "-{self}",
    "permute": "np.transpose({self}, {dims})",
    "pow": "{self} ** {exponent}",
    "reciprocal": "1 / {self}",
    "relu": "np.maximum({self}, 0)",
    "rsqrt": "1 / np.sqrt({self})",
    "scalar_tensor": "np.asarray({s}, {dtype})",
    "select": "np.take({self}, {index}, axis={dim})",
    "sigmoid": "1 / (1 + np.exp(-{self}))",
    "sign": "np.sign({self})",
    "sin": "np.sin({self})",
    "slice": "sliced({self}, {dim}, {start}, {end}, {step})",
    "split_with_sizes": "np.split({self}, np.cumsum({split_sizes})[:-1], axis={dim})",
    "sqrt": "np.sqrt({self})",
    "squeeze": "np.squeeze({self}, axis=tuple(each for each in {dim} if {self}.shape[each] == 1))",
    "sub": "{self} - {other}",
    "sum": "np.sum({self}, axis=tuple({dim}), keepdims={keepdim})",
    "sym_size": "{self}.shape[{dim}]",
    "tanh": "np.tanh({self})",
    "unsqueeze": "np.expand_dims({self}, {dim})",
    "view": "np.reshape({self}, {size})",
    "where": "np.where({condition}, {self}, {other})",
}
"""Operation, with its overload where that matters -> expression over its arguments, by their names in torch."""


def log_softmax(x: Any, dim: int) -> Any:
    """Logarithm of the softmax; rows of -inf alone stay."""
    shifted = x - np.max(x, axis=dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """(normalised over the last axes, mean, 1 / deviation)."""
    axes = tuple(range(-len(shape), 0))
    mean = np.mean(x, axis=axes, keepdims=True)
    scale = 1 / np.sqrt(np.var(x, axis=axes, keepdims=True) + eps)
    return (x - mean) * scale * weight + bias, mean, scale


def sliced(x: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    """A range of one axis."""
    index = [slice(None)] * x.ndim
    index[dim] = slice(start, end, step)
    return x[tuple(index)]


def expanded(x: Any, size: Sequence[int]) -> Any:
    """Broadcast; -1 keeps the size of an axis."""
    old = (1,) * (len(size) - x.ndim) + x.shape
    return np.broadcast_to(x, [have if want == -1 else want for want, have in zip(size, old, strict=True)])


def padded(x: Any, pad: Sequence[int], value: float) -> Any:
    """Padded from the last axis on: before, after, and so on."""
    pairs = [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    return np.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1], constant_values=value)


def windows(x: Any, size: Sequence[int], stride: Sequence[int]) -> Any:
    """[N, C, rows, columns, *size] of an image [N, C, H, W]."""
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=(2, 3))[:, :, :: stride[0], :: stride[1]]


def max_pool(x: Any, size: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> Any:
    """The largest of each window; a pair, as torch gives one, without the places."""
    edges = [(0, 0), (0, 0), (padding[0],) * 2, (padding[-1],) * 2]
    return np.max(windows(np.pad(x, edges, constant_values=-np.inf), size, stride), axis=(4, 5)), None


def convolution(
    x: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Any:
    """A convolution of images, without dilation and in one group."""
    assert tuple(dilation) == (1, 1) and groups == 1
    edges = [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2]
    seen = windows(np.pad(x, edges), weight.shape[2:], stride)
    out = np.tensordot(seen, weight, axes=([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)
    return out if bias is None else out + bias[:, None, None]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (log_softmax, layer_norm, sliced, expanded, padded, windows, max_pool, convolution)
}
"""By their names in the expressions."""
