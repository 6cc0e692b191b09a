"""Weights of a network as one flat float32 vector per version, to publish, adopt, digest and store.

Shape letter: P number of parameters of the network.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class WeightsError(Exception):
    """Weights do not fit the network, or hold a number that is not finite; the message names the field."""


@dataclass(frozen=True)
class Layout:
    """The place of each parameter in the flat vector.

    Fields:
      names: parameter names in the network's own order.
      shapes: shape of each.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of elements of each parameter."""
        return tuple(int(np.prod(shape)) for shape in self.shapes)

    @property
    def size(self) -> int:
        """P, elements of the whole vector."""
        return sum(self.sizes)


@dataclass(frozen=True)
class Weights:
    """Weights of one version of one policy.

    Fields:
      vector: float32 [P], read-only once published.
      layout: names and shapes.
      version: learner updates made when it was published.
    """

    vector: NDArray[np.float32]
    layout: Layout
    version: int

    def named(self) -> dict[str, NDArray[np.float32]]:
        """Views of the vector by parameter name."""
        ends = np.cumsum(self.layout.sizes)
        parts = np.split(self.vector, ends[:-1])
        return {
            name: part.reshape(shape)
            for name, shape, part in zip(self.layout.names, self.layout.shapes, parts, strict=True)
        }

    def digest(self) -> str:
        """sha256 (hex) over layout and values without the version: equal weights have equal digests."""
        state = hashlib.sha256(repr((self.layout.names, self.layout.shapes)).encode())
        state.update(np.ascontiguousarray(self.vector).tobytes())
        return state.hexdigest()


def layout_of(network: nn.Module) -> Layout:
    """The layout of a network's parameters.

    Raises:
      WeightsError: a parameter is not float32, and the flat vector could not hold it exactly.
    """
    names, shapes = [], []
    for name, parameter in network.named_parameters():
        if parameter.dtype != torch.float32:
            raise WeightsError(f"parameter {name} is {parameter.dtype}; master weights must be torch.float32")
        names.append(name)
        shapes.append(tuple(parameter.shape))
    return Layout(names=tuple(names), shapes=tuple(shapes))


def from_named(named: Mapping[str, NDArray[np.generic]], layout: Layout, *, version: int) -> Weights:
    """Flatten arrays by name into the order of `layout`.

    Raises:
      WeightsError: a name is missing or left over, a shape differs, or a value is not finite.
    """
    if set(named) != set(layout.names):
        missing, extra = sorted(set(layout.names) - set(named)), sorted(set(named) - set(layout.names))
        raise WeightsError(f"the weights are for another network: missing {_few(missing)}, not expected {_few(extra)}")
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        if tuple(named[name].shape) != shape:
            raise WeightsError(f"parameter {name} has shape {tuple(named[name].shape)}, the network needs {shape}")
    vector = np.concatenate([np.ravel(named[name]).astype(np.float32, copy=False) for name in layout.names])
    require_finite(vector)
    return Weights(vector=vector, layout=layout, version=version)


def _few(names: Sequence[str]) -> str:
    """The first of the names in brackets, and how many more there are."""
    return f"[{', '.join(names[:1])}{f' and {len(names) - 1} more' if len(names) > 1 else ''}]"


def require_finite(vector: NDArray[np.float32]) -> None:
    """Refuse a vector that holds NaN or infinity, before it is adopted.

    Raises:
      WeightsError: the index of the first bad element is named.
    """
    if not np.isfinite(vector).all():
        first = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise WeightsError(
            f"weight {first} of {vector.size} is {vector[first]}: refusing to publish non-finite weights"
        )


class FlatParameters:
    """A network's parameters and gradients as two flat tensors; the network's own tensors are views of them.

    Clipping and stepping then touch one tensor instead of dozens, without copies.

    Args:
      values: float32 [P], memory that the parameters take their numbers from and live in; None for new memory with
        their own numbers.
    """

    def __init__(self, network: nn.Module, *, values: Tensor | None = None) -> None:
        self._network = network
        self.layout = layout_of(network)
        if values is None:
            values = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])
        self.values = values
        self.gradients = torch.zeros_like(self.values)
        self._point(list(network.parameters()))

    def replace(self) -> None:
        """Give the network new parameters of the same values, and new gradients of 0.

        Threads that still compute with the old parameters add to gradients that nobody reads.
        """
        fresh = {id(old): nn.Parameter(old.detach()) for old in self._network.parameters()}
        self.gradients = torch.zeros_like(self.values)
        self._point(list(fresh.values()))
        for module in self._network.modules():
            for name, old in list(module.named_parameters(recurse=False, remove_duplicate=False)):
                setattr(module, name, fresh[id(old)])

    @contextlib.contextmanager
    def seen_as(self, values: Tensor) -> Iterator[None]:
        """Context in which the network computes with other weights, float32 [P]; its own memory is not touched."""
        parameters = list(self._network.parameters())
        _set_data(parameters, values)
        try:
            yield
        finally:
            _set_data(parameters, self.values)

    def _point(self, parameters: list[nn.Parameter]) -> None:
        """Make the parameters, in the order of the layout, views of the flat tensors."""
        _set_data(parameters, self.values)
        parts = torch.split(self.gradients, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view(parameter.shape)


def _set_data(parameters: list[nn.Parameter], values: Tensor) -> None:
    """Make the parameters, in the order of the layout, views of `values`."""
    parts = torch.split(values, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data = part.view(parameter.shape)


def adopt(network: nn.Module, weights: Weights) -> None:
    """Copy weights into a network of any floating dtype (an acting copy may be bfloat16).

    Raises:
      WeightsError: a name or shape differs.
    """
    parameters = dict(network.named_parameters())
    if tuple(parameters) != weights.layout.names:
        raise WeightsError("the weights are for another network: their parameter names differ")
    for (name, parameter), shape in zip(parameters.items(), weights.layout.shapes, strict=True):
        if tuple(parameter.shape) != shape:
            raise WeightsError(f"parameter {name}: weights {shape}, network {tuple(parameter.shape)}")
    vector = torch.from_numpy(np.array(weights.vector))
    if parameters:
        vector = vector.to(next(iter(parameters.values())).device)  # all at once: a device is waited for each time
    with torch.no_grad():
        parts = torch.split(vector, [parameter.numel() for parameter in parameters.values()])
        for parameter, values in zip(parameters.values(), parts, strict=True):
            parameter.copy_(values.view(parameter.shape))
