"""Rows of a batch in a file that their replica maps, so that they are copied once and never through a socket."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from league.agents.unroll.unroll import Unrolls
from league.envs.workers.shared_arrays import arrays_over, block_bytes


@dataclass(frozen=True)
class StoredRows:
    """Where rows lie.

    Fields:
      path: of the file. num_bytes: of it.
      layout: name, shape and dtype of every array in it, in the names of `Unrolls.arrays`.
    """

    path: str
    num_bytes: int
    layout: tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]

    def open(self) -> Unrolls:
        """The rows, as arrays over the mapped file: valid until the next rows are put there."""
        with open(self.path, "r+b") as file:  # noqa: PTH123  # its descriptor is mapped
            arrays = arrays_over(mmap.mmap(file.fileno(), self.num_bytes), self.layout)
        fields: dict[str, Any] = {"obs": {}}
        for name, array in arrays.items():
            field, dot, key = name.partition(".")
            if dot:
                fields.setdefault(field, {})[key] = array
            else:
                fields[field] = array
        return Unrolls(**fields)


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
        arrays = rows.arrays()
        layout = tuple((name, array.shape, array.dtype) for name, array in arrays.items())
        block = self._with_room(block_bytes(layout))
        for name, place in arrays_over(block, layout).items():
            place[...] = arrays[name]
        return StoredRows(os.fspath(self._path), len(block), layout)

    def close(self) -> None:
        """Forget the file; may be called twice."""
        self._block = None

    def _with_room(self, num_bytes: int) -> mmap.mmap:
        if self._block is None or len(self._block) < num_bytes:
            with self._path.open("a+b") as file:
                file.truncate(num_bytes)
                self._block = mmap.mmap(file.fileno(), num_bytes)
        return self._block
