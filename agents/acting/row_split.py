"""The division of a batch of rows among networks, and the whole blocks of rows that kernels are kept for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK_SLOTS = 64
"""Forward passes take a whole number of blocks of this many rows. The number of a policy's slots changes every turn.
The matrix library builds and keeps a kernel for every number it meets, which would cost hundreds of megabytes."""


def padded_size(count: int) -> int:
    """Rows of the forward pass for so many slots."""
    return count + (-count % BLOCK_SLOTS if count > BLOCK_SLOTS else 0)


def fill_blocks(slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pad the slots to a whole number of blocks by repeating the first one."""
    missing = padded_size(len(slots)) - len(slots)
    return np.concatenate([slots, np.full(missing, slots[0])]) if missing else slots


class Piece(NamedTuple):
    """The rows of one network; a tuple, since a few are made in every turn.

    Fields:
      network: its index. begin, size: its rows. block, width: the rows to compute, which are these and as many beside
        them as make whole blocks, since a kernel is kept for every number of rows.
    """

    network: int
    begin: int
    size: int
    block: int
    width: int

    def own_rows(self, rows: Tensor) -> Tensor:
        """A view of the network's rows."""
        return rows.narrow(0, self.begin, self.size)

    def block_rows(self, rows: Tensor) -> Tensor:
        """A view of the rows to compute."""
        return rows.narrow(0, self.block, self.width)

    def own_of_block(self, block: Tensor) -> Tensor:
        """The network's rows of those computed."""
        return block if self.width == self.size else block.narrow(0, self.begin - self.block, self.size)


class RowSplit:
    """The division of the rows at hand: which networks have some, and how many each."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._total = 0
        self._pieces: dict[int, list[Piece]] = {}

    def set(self, sizes: Sequence[int]) -> None:
        """Args: sizes: [M] numbers of rows, in the order of the rows; in all `padded_size` of some number."""
        self._sizes = [size for size in sizes if size]
        self._total = sum(sizes)
        pieces, begin = [], 0
        for network, size in enumerate(sizes):
            if size:
                width = padded_size(size)
                pieces.append(Piece(network, begin, size, min(begin, self._total - width), width))
                begin += size
        self._pieces = {1: pieces}

    def pieces(self, num_rows: int) -> list[Piece]:
        """A piece for each network that is present, of a tensor with N rows or a multiple of N."""
        times = num_rows // self._total
        if times not in self._pieces:
            self._pieces[times] = [
                Piece(piece.network, times * piece.begin, times * piece.size, times * piece.block, times * piece.width)
                for piece in self._pieces[1]
            ]
        return self._pieces[times]

    def of(self, rows: Tensor) -> tuple[Tensor, ...]:
        """A view for each network that is present, of a tensor with N rows."""
        return torch.split(rows, self._sizes)
