"""Rows of a learner as they were decoded in the caller's thread: first in, first out, on whichever device they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import ChunkT, RowBlocks, SourcePlace
from league.agents.learner.data.source_counts import SourceReport
from league.agents.learner.errors import FeederTimeoutError
from league.agents.unroll.device_unrolls import AnyRows, concatenate_any

UNBOUNDED = 1 << 62
"""Rows of a chunk: the caller learns from what is ready before it pushes more."""


class RowList(Generic[ChunkT]):
    """Rows as they came; a batch is one block, joined when it is handed out."""

    def __init__(self, config: LearnerConfig, place: SourcePlace[ChunkT]) -> None:
        self._batch_rows = config.batch_rows
        self._decode = place.decode
        self._changed = place.changed
        self._parts: list[AnyRows] = []
        self._rows = 0
        self._taken = 0  # since the last report

    @property
    def capacity(self) -> int:
        """As in the protocol; chunks of any size fit."""
        return UNBOUNDED

    @property
    def waiting(self) -> int:
        return 0

    @property
    def rows_ready(self) -> int:
        return self._rows

    def push(self, chunk: ChunkT, *, num_rows: int, timeout_s: float = 0.0) -> None:
        """As in the protocol; never waits. A ValueError of the decoder is raised here."""
        del num_rows, timeout_s
        rows = self._decode(chunk)
        with self._changed:
            self._parts.append(rows)
            self._rows += rows.num_rows
            self._taken += rows.num_rows
            self._changed.notify_all()

    @contextlib.contextmanager
    def batch(self, *, timeout_s: float) -> Iterator[RowBlocks]:
        """As in the protocol, without a wait."""
        del timeout_s
        with self._changed:
            if self._rows < self._batch_rows:
                raise FeederTimeoutError(f"{self._rows} of {self._batch_rows} rows are there")
            rows = concatenate_any(self._parts)
            left = rows.rows(self._batch_rows, rows.num_rows)
            self._parts, self._rows = ([left] if left.num_rows else []), left.num_rows
        yield RowBlocks(iter([rows.rows(0, self._batch_rows)]))

    def learnt(self, row_errors: NDArray[np.float32] | None) -> None:
        """As in the protocol; rows are not looked at again."""

    def report(self) -> SourceReport:
        taken, self._taken = self._taken, 0
        return SourceReport(rows=taken)

    def close(self) -> None:
        self._parts, self._rows = [], 0
