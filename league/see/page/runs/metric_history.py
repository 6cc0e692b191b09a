"""The metrics of a run over time, followed from metrics.jsonl: read once, then extended by each new row."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from league.run.monitor import names
from league.run.monitor.jsonl_sink import MetricRow, decode_row

PIECE_BYTES = 4 << 20
"""Bytes read at once, between which the lock is free."""
SEEN_BYTES = 256
"""Bytes before the end of what was read by which a file is known again."""
POINTS = 400
"""Points of a series that a chart can show apart."""
SILENCE_S = 60.0
"""Seconds between two rows from which nothing ran between them; rows come every few seconds."""
_TRAINED = names.TRAINED_STEPS.name.rpartition("}")[2]


@dataclass(frozen=True)
class MetricSeries:
    """One metric over time. steps: env steps of the league; times: seconds since 1970; values: of the metric there."""

    steps: Sequence[int]
    times: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Moments:
    """The same moments counted in four ways, each of which never falls.

    Fields:
      wall: seconds since 1970. env_steps, trained_steps: of the league. core_seconds: of the run's processes, 0
        where it was not reported.
      silences: (from, to) in wall time, between which nothing was reported.
    """

    wall: Sequence[float]
    env_steps: Sequence[float]
    trained_steps: Sequence[float]
    core_seconds: Sequence[float]
    silences: Sequence[tuple[float, float]]


@dataclass
class _Column:
    steps: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


class MetricHistory:
    """Follows one file of metrics. All calls but `extend` are quick; they may come from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock, self._extending = threading.Lock(), threading.Lock()
        self._columns: dict[str, _Column]
        self._place, self._node, self._rest, self._seen = 0, 0, b"", b""
        self.last: MetricRow | None
        self.num_rows: int
        self._forget()

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
                    self._forget()
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

    def _forget(self) -> None:
        self._columns, self.last, self.num_rows = {}, None, 0
        self._times, self._steps, self._trained, self._core_seconds = (array("d") for _ in range(4))
        self._silences: list[tuple[float, float]] = []

    def names(self) -> list[str]:
        """Names of the metrics that have ever been reported."""
        with self._lock:
            return sorted(self._columns)

    def series(self, name: str, *, points: int = POINTS) -> MetricSeries:
        """A metric over time, at most so many points: the newest, and before it evenly chosen ones."""
        with self._lock:
            column = self._columns.get(name)
            if column is None:
                return MetricSeries((), (), ())
            chosen = _spread(len(column.steps), points)
            return MetricSeries(
                [column.steps[i] for i in chosen],
                [column.times[i] for i in chosen],
                [column.values[i] for i in chosen],
            )

    def moments(self, *, points: int = POINTS) -> Moments:
        """The moments at which the run was measured, at most so many: the newest, and evenly chosen ones before it."""
        with self._lock:
            times, silences = self._times, tuple(self._silences)
            chosen = _spread(len(times), points)
            steps, trained, core = (
                [column[i] for i in chosen] for column in (self._steps, self._trained, self._core_seconds)
            )
            return Moments([times[i] for i in chosen], steps, trained, core, silences)

    def _take(self, line: bytes) -> None:
        row = decode_row(line)
        if row is None:
            return
        self._take_moment(row)
        self.last = row
        self.num_rows += 1
        for name, value in row.values.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = _Column()
            column.steps.append(row.step)
            column.times.append(row.time)
            column.values.append(value)

    def _take_moment(self, row: MetricRow) -> None:
        """None of the counts falls: a player that retires is in no later row, and its steps stay trained."""
        trained = sum(value for name, value in row.values.items() if name.endswith(_TRAINED))
        if self.last is not None and row.time - self.last.time > SILENCE_S:
            self._silences.append((self.last.time, row.time))
        for column, value in (
            (self._times, row.time),
            (self._steps, row.step),
            (self._trained, trained),
            (self._core_seconds, row.values.get(names.CORE_S.name, 0.0)),
        ):
            column.append(max(value, column[-1]) if column else value)


def _spread(size: int, points: int) -> Sequence[int]:
    return range(size) if size <= points else [(i * (size - 1)) // (points - 1) for i in range(points)]
