"""The memory that the rows of a replay lie in: of this process, or a mapped file that outlives it.

Layout of a file, little-endian: 4096 bytes of head (u64 magic, digest of the layout, capacity, generation, inserts,
samples) | f32 error of each row | u8 times sampled | rows. Only the head is trusted when a file is opened again: each
row has its own checksum.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from league.agents.replay.row_bytes import RowLayout

HEAD_BYTES = 4096
MAGIC = int.from_bytes(b"LGREPLY1", "little")
GROWTH_BYTES = 16 << 20
"""Bytes of a file that get their place on the disk at once."""
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
INSERTS, SAMPLES = 4, 5
"""Places of the counts of the rate limiter in the head."""


class NoDiskSpaceError(Exception):
    """The next rows have no place on the disk; those that are there stay."""


@dataclass
class ReplayMemory:
    """The arrays of a replay of C rows.

    Fields:
      head: uint64, the numbers of the file's head. errors: float32 [C]. sampled: uint8 [C], times, 255 at most.
      rows: uint8 [C, W].
      reopened: whether they hold rows of an earlier process.
    """

    head: NDArray[np.uint64]
    errors: NDArray[np.float32]
    sampled: NDArray[np.uint8]
    rows: NDArray[np.uint8]
    reopened: bool = False

    def reserve(self, stop: int) -> None:
        """Make sure that the rows before `stop` can be written. Raises NoDiskSpaceError."""

    def close(self) -> None:
        """Give the memory back; may be called twice."""


def memory_of(layout: RowLayout, capacity: int) -> ReplayMemory:
    """Zeros in the memory of this process, which takes it up row by row."""
    return ReplayMemory(
        np.zeros(HEAD_BYTES // 8, np.uint64),
        np.zeros(capacity, np.float32),
        np.zeros(capacity, np.uint8),
        layout.block(capacity),
    )


class MappedRows(ReplayMemory):
    """A mapped file. Rows get their place on the disk before they are written: a store into a hole of a full disk
    would end the process.

    Raises:
      NoDiskSpaceError: there is no place for the head.
    """

    def __init__(self, path: Path, layout: RowLayout, capacity: int, *, generation: int) -> None:
        expected = (MAGIC, xxhash.xxh3_64_intdigest(layout.description.encode()), capacity, generation)
        self._front = HEAD_BYTES + -(-5 * capacity // HEAD_BYTES) * HEAD_BYTES
        self._row_bytes = layout.row_bytes
        size = self._front + capacity * layout.row_bytes
        self._file = _kept(path, expected, size)
        reopened = self._file is not None
        if self._file is None:
            self._file = _new(path, size, front=self._front)
        self._fd: int | None = self._file
        self._reserved = self._front
        self._map = mmap.mmap(self._file, size)
        whole = np.frombuffer(self._map, np.uint8)
        super().__init__(
            head=whole[:HEAD_BYTES].view(np.uint64),
            errors=whole[HEAD_BYTES : HEAD_BYTES + 4 * capacity].view(np.float32),
            sampled=whole[HEAD_BYTES + 4 * capacity : HEAD_BYTES + 5 * capacity],
            rows=whole[self._front : size].reshape(capacity, layout.row_bytes),
            reopened=reopened,
        )
        self.head[: len(expected)] = expected

    def reserve(self, stop: int) -> None:
        end = self._front + stop * self._row_bytes
        if end <= self._reserved:
            return
        last = self._front + self.rows.size
        upto = min(max(end, self._reserved + GROWTH_BYTES), last)
        assert self._fd is not None, "closed"
        _reserve(self._fd, self._reserved, upto)
        self._reserved = upto

    def close(self) -> None:
        """As in the base. The map itself goes when no view of it is left."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _kept(path: Path, expected: tuple[int, ...], size: int) -> int | None:
    """The file of an earlier process, where it is whole and holds rows of this layout and generation."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    head = np.frombuffer(os.pread(descriptor, 8 * len(expected), 0), np.uint64)
    if os.fstat(descriptor).st_size == size and tuple(head.tolist()) == expected:
        return descriptor
    os.close(descriptor)
    return None


def _new(path: Path, size: int, *, front: int) -> int:
    """A new file in the place of the old one, which whoever has mapped it keeps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size)
        _reserve(descriptor, 0, front)
        beside.rename(path)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
        raise
    return descriptor


def _reserve(descriptor: int, start: int, stop: int) -> None:
    try:
        os.posix_fallocate(descriptor, start, stop - start)
    except OSError as error:
        if error.errno in NO_SPACE:
            raise NoDiskSpaceError(f"{stop - start} bytes of replayed rows have no place on the disk") from error
        raise
