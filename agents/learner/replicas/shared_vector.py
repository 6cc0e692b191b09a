"""Flat float32 vectors in files that the replicas of one machine map into their memory.

Shape letter: P numbers of the vector.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 64
"""A cache line before the numbers: the sequence number and the version, int64 each."""

READ_S = 1.0
"""Longest wait for a writer to finish; writing takes microseconds."""


class TornVectorError(Exception):
    """A writer ended in the middle of a change: the numbers are of two versions."""


class SharedVector:
    """A vector [P] with a version, written by one process at a time and read by any number without a lock.

    The sequence number is odd during a change, and a reader repeats a copy during which it moved (a seqlock). A file
    that did not exist is created with zeros and version 0.

    Args:
      path: of the file. size: P.
    Source: Lameter 2005, Effective synchronization on Linux/NUMA systems, section on sequence locks.
    """

    def __init__(self, path: Path, size: int) -> None:
        num_bytes = HEADER_BYTES + 4 * size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, num_bytes)  # changes nothing where another process did the same
            block = mmap.mmap(descriptor, num_bytes)
        finally:
            os.close(descriptor)
        self._header = np.frombuffer(block, np.int64, 2)
        self.values: NDArray[np.float32] = np.frombuffer(block, np.float32, size, HEADER_BYTES)

    @property
    def version(self) -> int:
        """Of the newest change; 0 for none."""
        return int(self._header[1])

    @contextlib.contextmanager
    def changing(self, *, version: int) -> Iterator[NDArray[np.float32]]:
        """Context in which the caller alone changes the numbers, which have the given version afterwards.

        If it raises, the vector stays torn until the next change.
        """
        self._header[0] |= 1
        yield self.values
        self._header[1] = version
        self._header[0] += 1

    def write(self, values: NDArray[np.float32], *, version: int) -> None:
        """Replace all numbers. values: float32 [P]."""
        with self.changing(version=version) as own:
            own[:] = values

    def read(self, *, timeout_s: float = READ_S) -> tuple[NDArray[np.float32], int]:
        """A copy of one version, and that version.

        Raises:
          TornVectorError: a change did not end within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            before = int(self._header[0])
            if before % 2 == 0:
                copied, version = self.values.copy(), self.version
                if int(self._header[0]) == before:
                    return copied, version
            if time.monotonic() > deadline:
                raise TornVectorError("a change of the vector was begun and not ended")
            time.sleep(0)  # lets a writer in another thread of this process finish
