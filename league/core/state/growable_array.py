"""Arrays that grow at their end, so that appending costs O(1) and reading is one numpy view."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class GrowableArray:
    """A numpy array [size, *tail] that grows by doubling."""

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


class NarrowArray:
    """Numbers [size, *tail], in the first of some types that holds all of them exactly.

    It grows by a sixteenth, in place where the allocator can, and single numbers are read and written without numpy.

    Args:
      types: type codes of the module `array`, the narrowest first; the last holds whatever comes.

    Fields:
      numbers: all of them, row after row; to be replaced whenever one is put that needs a wider type.
    """

    def __init__(self, types: str, tail: tuple[int, ...] = ()) -> None:
        self.numbers: array[Any] = array(types[0])
        self._wider = types[1:]
        self._tail = tail
        self._width = math.prod(tail)

    @classmethod
    def of(cls, values: NDArray[Any], types: str) -> NarrowArray:
        """An array that holds a copy of `values` [size, *tail]."""
        narrow = cls(types, values.shape[1:])
        with np.errstate(over="ignore"):
            while narrow._wider and (values.astype(narrow.numbers.typecode) != values).any():
                narrow._widen()
        narrow.numbers.frombytes(values.astype(narrow.numbers.typecode).tobytes())
        return narrow

    def __len__(self) -> int:
        return len(self.numbers) // self._width

    @property
    def values(self) -> NDArray[Any]:
        """View [size, *tail]; nothing can be appended while it is held."""
        return np.asarray(self.numbers).reshape(-1, *self._tail)

    def append(self, *numbers: float) -> int:
        """Add one row; returns its index."""
        start = len(self.numbers)
        self.numbers.frombytes(bytes(self._width * self.numbers.itemsize))
        for place, number in enumerate(numbers, start):
            self.put(place, number)
        return start // self._width

    def put(self, place: int, number: float) -> None:
        """Set one number; place: of it in `numbers`."""
        try:
            self.numbers[place] = number
            if self.numbers[place] == number or not self._wider:
                return
        except OverflowError:
            pass
        self._widen()
        self.put(place, number)

    def add(self, place: int, number: float) -> None:
        """Add to one number."""
        self.put(place, self.numbers[place] + number)

    def _widen(self) -> None:
        self.numbers = array(self._wider[0], self.numbers)
        self._wider = self._wider[1:]
