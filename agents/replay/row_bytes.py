"""Rows of unrolls as bytes, one row after the other, each with a serial and a checksum.

A row is copied, sent to a file and checked as one piece. Layout of a row: u64 checksum | u64 serial | the fields.

Shape letters: R rows, W bytes of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from league.agents.unroll.unroll import Unrolls, UnrollSpec

CHECKSUM_BYTES = 8
HEAD_BYTES = CHECKSUM_BYTES + 8
"""Checksum and serial."""
ALIGNMENT = 8


@dataclass(frozen=True)
class _Place:
    """A field in a row: its offset, the shape in one row, and the strides of a block of rows."""

    offset: int
    inner: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]

    def view(self, block: NDArray[np.uint8]) -> NDArray[Any]:
        """The field of every row of a block [R, W]."""
        rows = block.shape[0]
        return np.ndarray((rows, *self.inner), self.dtype, block, self.offset if rows else 0, self.strides)


class RowLayout:
    """The places of the fields in a row of W bytes."""

    def __init__(self, spec: UnrollSpec) -> None:
        self.example = spec.allocate(1)
        fields, offset = self.example.arrays(), HEAD_BYTES
        offsets = {}
        for name, array in fields.items():
            offsets[name] = offset
            offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        self.row_bytes = offset
        self._places = {
            name: _Place(offsets[name], array.shape[1:], array.dtype, (offset, *array[0].strides))
            for name, array in fields.items()
        }

    @property
    def description(self) -> str:
        """Names, dtypes and shapes of the fields in their order."""
        return "; ".join(f"{name} {place.dtype} {place.inner}" for name, place in self._places.items())

    def block(self, num_rows: int) -> NDArray[np.uint8]:
        """uint8 [R, W], zeros."""
        return np.zeros((num_rows, self.row_bytes), np.uint8)

    def unrolls(self, block: NDArray[np.uint8]) -> Unrolls:
        """Views of the fields of a block [R, W]."""
        views = {name: place.view(block) for name, place in self._places.items()}
        obs = {name: views.pop(f"obs.{name}") for name in self.example.obs}
        return Unrolls(obs=obs, **views)

    def filled(self, unrolls: Unrolls, serials: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """uint8 [R, W], a copy of the unrolls with these serials and no checksums."""
        block = self.block(unrolls.num_rows)
        serials_of(block)[:] = serials
        theirs = unrolls.arrays()
        for name, place in self._places.items():
            np.copyto(place.view(block), theirs[name], casting="same_kind")
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
    view = np.ascontiguousarray(block).reshape(-1).data
    width = block.shape[1]
    starts = range(CHECKSUM_BYTES, block.shape[0] * width, width)
    stop = width - CHECKSUM_BYTES
    return np.fromiter((digest(view[at : at + stop]) or 1 for at in starts), np.uint64, count=block.shape[0])
