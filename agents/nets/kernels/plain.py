"""The records of a plain network and its observations as the compiled kernels read them (vtrace_update.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from league.agents.nets.kernels.dense_chain import DenseParameters

_KINDS = {"float32": 0, "int8": 1, "uint8": 2, "bool": 2}

FIELD_KINDS: Mapping[Any, int] = {
    type_of(name): kind for name, kind in _KINDS.items() for type_of in (np.dtype, lambda name: getattr(torch, name))
}
"""Types of observation fields, numpy's and torch's -> their numbers in vtrace_update.c."""


class Scaling(Protocol):
    """The scaling of a field, see `FieldScaling`; offsets and factors float32 [D], or None."""

    @property
    def is_squashed(self) -> bool: ...
    @property
    def offsets(self) -> Tensor | None: ...
    @property
    def factors(self) -> Tensor | None: ...


class CField(ctypes.Structure):
    """`struct field` of vtrace_update.c."""

    _fields_ = [
        ("numbers", ctypes.c_void_p),
        ("width", ctypes.c_long),
        *((name, ctypes.c_int) for name in ("kind", "is_squashed")),
        ("period", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("offsets", "factors")),
    ]

    @classmethod
    def of(cls, address: int, width: int, dtype: Any, scaling: Scaling) -> CField:
        """A field at an address of memory, of so many numbers in a row. dtype: one of `FIELD_KINDS`.

        Raises:
          ValueError: there are moments for another number of numbers.
        """
        made = cls(address, width, FIELD_KINDS[dtype], scaling.is_squashed)
        if scaling.offsets is not None and scaling.factors is not None:
            made.period = scaling.offsets.numel()
            if width % made.period:
                raise ValueError(f"{width} numbers in a row of a field with {made.period} moments")
            made.offsets, made.factors = scaling.offsets.data_ptr(), scaling.factors.data_ptr()
        return made


class CNetwork(ctypes.Structure):
    """`struct network` of vtrace_update.c."""

    _fields_ = [
        ("layers", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("widths", "weights", "biases", "weight_gradients", "bias_gradients")),
        ("relu", ctypes.c_void_p),
        ("has_tanh", ctypes.c_int),
        *((name, ctypes.c_float) for name in ("value_std", "value_mean", "illegal")),
    ]

    @classmethod
    def of(
        cls,
        layers: Sequence[DenseParameters],
        *,
        has_tanh: bool,
        illegal: float,
        value: tuple[float, float] = (1.0, 0.0),
        gradients: Sequence[Sequence[Tensor]] = ((), ()),
    ) -> CNetwork:
        """A network as it lies in memory now: its weights may be put elsewhere later.

        Args:
          value: standard deviation and mean of the value targets, by which popart scales the last output.
          gradients: of the weights and of the biases; empty where the kernel computes none.
        """
        widths = (layers[0].weight.shape[1], *(layer.weight.shape[0] for layer in layers))
        tables: list[ctypes.Array[Any]] = [
            (ctypes.c_long * len(widths))(*widths),
            _pointers([layer.weight for layer in layers]),
            _pointers([layer.bias for layer in layers]),
            *(_pointers(tensors) for tensors in gradients),
            (ctypes.c_int * len(layers))(*(layer.activation == "relu" for layer in layers)),
        ]
        made = cls(len(layers), *(ctypes.addressof(table) for table in tables), has_tanh, *value, illegal)
        made.tables = tables  # which the kernel reads through addresses
        return made


def _pointers(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors])
