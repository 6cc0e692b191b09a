"""Named arrays over one block of memory, laid out alike by every process that knows their shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNED = 64
"""Bytes of a cache line, at the start of which each array begins."""

ArrayLayout = Iterable[tuple[str, tuple[int, ...], np.dtype[Any]]]
"""Name, shape and dtype of every array, in order."""


def block_bytes(layout: ArrayLayout) -> int:
    """Bytes of a block that holds the arrays."""
    return sum(_bytes_of(shape, dtype) for _, shape, dtype in layout)


def arrays_over(block: mmap | bytearray, layout: ArrayLayout) -> dict[str, NDArray[Any]]:
    """Name -> array, a view of the block."""
    arrays: dict[str, NDArray[Any]] = {}
    start = 0
    for name, shape, dtype in layout:
        arrays[name] = np.frombuffer(block, dtype, math.prod(shape), start).reshape(shape)
        start += _bytes_of(shape, dtype)
    return arrays


def _bytes_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return -(-math.prod(shape) * dtype.itemsize // ALIGNED) * ALIGNED
