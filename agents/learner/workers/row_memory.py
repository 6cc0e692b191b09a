"""Rows of a batch in a file that their replica maps, so that they are copied once and never through a socket."""

from __future__ import annotations

import mmap
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from league.agents.unroll.unroll import Unrolls

ALIGNED = 64
"""Bytes of a cache line, at which each array begins."""


@dataclass(frozen=True)
class StoredRows:
    """Where rows lie; sent to their replica, which belongs to the same learner.

    Fields:
      path: of the file. num_bytes: of it. record: the rows without their arrays, as pickle writes them.
      places: [start, stop) of each array, in order.
    """

    path: str
    num_bytes: int
    record: bytes
    places: tuple[tuple[int, int], ...]

    def open(self) -> Unrolls:
        """The rows, as arrays over the mapped file: valid until the next rows are put there."""
        with open(self.path, "r+b") as file:  # noqa: PTH123  # its descriptor is mapped
            block = memoryview(mmap.mmap(file.fileno(), self.num_bytes))
        return cast(Unrolls, pickle.loads(self.record, buffers=[block[start:stop] for start, stop in self.places]))


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
        buffers: list[pickle.PickleBuffer] = []
        record = pickle.dumps(rows, protocol=5, buffer_callback=buffers.append)
        views = [buffer.raw() for buffer in buffers]
        places, start = [], 0
        for view in views:
            places.append((start, start + view.nbytes))
            start += -(-view.nbytes // ALIGNED) * ALIGNED
        block = self._with_room(max(start, ALIGNED))
        for (begin, end), view in zip(places, views, strict=True):
            block[begin:end] = view
        return StoredRows(os.fspath(self._path), len(block), record, tuple(places))

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
