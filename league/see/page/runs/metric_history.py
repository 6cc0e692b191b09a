"""The metrics of a run over time, followed from metrics.jsonl: read once, then extended by each new row."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from league.run.monitor.jsonl_sink import MetricRow, decode_row

PIECE_BYTES = 4 << 20
"""Bytes read at once, between which the lock is free."""
SEEN_BYTES = 256
"""Bytes before the end of what was read by which a file is known again."""
POINTS = 400
"""Points of a series that a chart can show apart."""


@dataclass(frozen=True)
class MetricSeries:
    """One metric over time. steps: env steps of the league; values: of the metric there."""

    steps: Sequence[int]
    values: Sequence[float]


@dataclass
class _Column:
    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))


class MetricHistory:
    """Follows one file of metrics. All calls but `extend` are quick; they may come from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock, self._extending = threading.Lock(), threading.Lock()
        self._columns: dict[str, _Column] = {}
        self._place, self._node, self._rest, self._seen = 0, 0, b"", b""
        self.last: MetricRow | None = None
        self.num_rows = 0

    def extend(self) -> bool:
        """Take in the rows that are new; returns whether there were any. A file that was replaced is read again."""
        with self._extending:
            return self._extend()

    def _extend(self) -> bool:
        try:
            opened = self._path.open("rb")
        except OSError:
            return False
        has_new = False
        with opened as file:
            if not self._continues(file):
                with self._lock:
                    self._columns, self.last, self.num_rows = {}, None, 0
                self._place, self._rest, self._seen = 0, b"", b""
            self._node = os.fstat(file.fileno()).st_ino
            file.seek(self._place)
            while piece := file.read(PIECE_BYTES):
                self._place += len(piece)
                self._seen = (self._seen + piece)[-SEEN_BYTES:]
                *lines, self._rest = (self._rest + piece).split(b"\n")
                has_new = bool(lines) or has_new
                with self._lock:
                    for line in lines:
                        self._take(line)
        return has_new

    def _continues(self, file: BinaryIO) -> bool:
        """True if a file begins with all that was read; a new file may have the number of the one that it replaces."""
        if os.fstat(file.fileno()).st_ino != self._node:
            return False
        file.seek(self._place - len(self._seen))
        return file.read(len(self._seen)) == self._seen

    def names(self) -> list[str]:
        """Names of the metrics that have ever been reported."""
        with self._lock:
            return sorted(self._columns)

    def series(self, name: str, *, points: int = POINTS) -> MetricSeries:
        """A metric over time, at most so many points: the newest, and before it evenly chosen ones."""
        with self._lock:
            column = self._columns.get(name)
            if column is None:
                return MetricSeries((), ())
            size = len(column.steps)
            chosen = range(size) if size <= points else [(i * (size - 1)) // (points - 1) for i in range(points)]
            return MetricSeries([column.steps[i] for i in chosen], [column.values[i] for i in chosen])

    def _take(self, line: bytes) -> None:
        row = decode_row(line)
        if row is None:
            return
        self.last = row
        self.num_rows += 1
        for name, value in row.values.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = _Column()
            column.steps.append(row.step)
            column.values.append(value)
