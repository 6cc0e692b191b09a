"""Rows of a batch in a file that their replica maps, so that they are copied once and never through a socket."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.field_table import converted
from league.agents.unroll.unroll import Unrolls

ALIGNED = 64
"""Bytes of a cache line, at which each array begins."""


@dataclass(frozen=True)
class Place:
    """An array in the file. start: its first byte."""

    start: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class StoredRows:
    """Rows in a file; sent to their replica, which belongs to the same learner.

    Fields:
      path: of the file. num_bytes: of it. fields: of the rows, a `Place` for each array.
    """

    path: str
    num_bytes: int
    fields: Mapping[str, Any]

    def open(self) -> Unrolls:
        """The rows, as arrays over the mapped file: valid until the next rows are put there."""
        with open(self.path, "r+b") as file:  # noqa: PTH123  # its descriptor is mapped
            block = mmap.mmap(file.fileno(), self.num_bytes)

        def array(place: Place) -> NDArray[np.generic]:
            count = int(np.prod(place.shape, dtype=np.int64))
            flat = np.frombuffer(block, place.dtype, count=count, offset=place.start)
            return flat.reshape(place.shape)

        return Unrolls(**converted(self.fields, array))


class RowMemory:
    """The file of one replica, as large as its largest batch so far.

    Args:
      path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._block: mmap.mmap | None = None

    def put(self, rows: Unrolls) -> StoredRows:
        """Copy rows to the file; the replica must have finished with those before."""
        arrays = list(rows.arrays().values())
        block = self._with_room(sum(_padded(array.nbytes) for array in arrays) + ALIGNED)
        start = 0

        def placed(array: NDArray[np.generic]) -> Place:
            nonlocal start
            place, start = Place(start, array.shape, array.dtype.str), start + _padded(array.nbytes)
            there = np.frombuffer(block, array.dtype, count=array.size, offset=place.start)
            there.reshape(array.shape)[...] = array
            return place

        return StoredRows(os.fspath(self._path), len(block), rows.converted(placed))

    def close(self) -> None:
        """Unmap the file; may be called twice."""
        if self._block is not None:
            self._block.close()
            self._block = None

    def _with_room(self, num_bytes: int) -> mmap.mmap:
        if self._block is None or len(self._block) < num_bytes:
            self.close()
            with self._path.open("a+b") as file:
                file.truncate(num_bytes)
                self._block = mmap.mmap(file.fileno(), num_bytes)
        return self._block


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNED) * ALIGNED
