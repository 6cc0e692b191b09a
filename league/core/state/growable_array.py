"""Arrays that grow by doubling, so that appending costs O(1) and reading is one numpy view."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class GrowableArray:
    """A numpy array [size, *tail] that grows at its end."""

    def __init__(self, dtype: str, tail: tuple[int, ...] = ()) -> None:
        self._buffer: NDArray[Any] = np.zeros((8, *tail), dtype=dtype)
        self._size = 0

    @classmethod
    def of(cls, values: NDArray[Any]) -> GrowableArray:
        """An array that holds a copy of `values` [size, *tail]."""
        column = cls(values.dtype.str, values.shape[1:])
        column._buffer = np.array(values) if len(values) else column._buffer
        column._size = len(values)
        return column

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """View [size, *tail]; writes go to the array, and growing the array makes the view stale."""
        return self._buffer[: self._size]

    def append(self, value: ArrayLike) -> int:
        """Add one row; returns its index."""
        if self._size == len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.zeros_like(self._buffer)])
        self._buffer[self._size] = value
        self._size += 1
        return self._size - 1
