"""Rows of unrolls as bytes, one row after the other, each with a serial and a checksum.

A row is copied, sent to a file and checked as one piece. Layout of a row: u64 checksum | u64 serial | the fields.

Shape letters: R rows, W bytes of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from league.agents.unroll.unroll import Allocator, Unrolls, UnrollSpec

CHECKSUM_BYTES = 8
HEAD_BYTES = CHECKSUM_BYTES + 8
"""Checksum and serial."""
ALIGNMENT = 8


class RowLayout:
    """The places of the fields in a row of W bytes."""

    def __init__(self, spec: UnrollSpec) -> None:
        self._spec = spec
        self.row_bytes = HEAD_BYTES + sum(_padded(array.nbytes) for array in spec.allocate(1).arrays().values())

    @property
    def description(self) -> str:
        """Names, dtypes and shapes of the fields in their order."""
        return "; ".join(f"{name} {a.dtype} {a.shape[1:]}" for name, a in self._spec.allocate(1).arrays().items())

    def block(self, num_rows: int) -> NDArray[np.uint8]:
        """uint8 [R, W], zeros."""
        return np.zeros((num_rows, self.row_bytes), np.uint8)

    def unrolls(self, block: NDArray[np.uint8]) -> Unrolls:
        """Views of the fields of a block [R, W]."""
        return self._spec.allocate(block.shape[0], zeros=_views(block))

    def filled(self, unrolls: Unrolls, serials: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """uint8 [R, W], a copy of the unrolls with these serials and no checksums."""
        block = self.block(unrolls.num_rows)
        serials_of(block)[:] = serials
        theirs = unrolls.arrays()
        for name, array in self.unrolls(block).arrays().items():
            np.copyto(array, theirs[name], casting="same_kind")
        return block


def serials_of(block: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """uint64 [R], views of the serials."""
    return block[:, CHECKSUM_BYTES:HEAD_BYTES].view(np.uint64)[:, 0]


def checksums_of(block: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """uint64 [R], views of the checksums that the rows bear."""
    return block[:, :CHECKSUM_BYTES].view(np.uint64)[:, 0]


def computed_checksums(block: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """uint64 [R], XXH3 of serial and fields; never 0, which a row bears that was never written."""
    digest = xxhash.xxh3_64_intdigest
    view = memoryview(np.ascontiguousarray(block)).cast("B") if block.size else memoryview(b"")
    width = block.shape[1]
    starts = range(CHECKSUM_BYTES, block.shape[0] * width, width)
    stop = width - CHECKSUM_BYTES
    return np.fromiter((digest(view[at : at + stop]) or 1 for at in starts), np.uint64, count=block.shape[0])


def _views(block: NDArray[np.uint8]) -> Allocator:
    """Hands out one field after the other as a view of the block; an optional field that is asked for comes too."""
    offset = HEAD_BYTES

    def view(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        nonlocal offset
        inner = np.empty(shape[1:], dtype)
        made: NDArray[Any] = np.ndarray(
            shape, dtype, buffer=block, offset=offset if block.size else 0, strides=(block.strides[0], *inner.strides)
        )
        offset += _padded(inner.nbytes)
        return made

    return view


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT
