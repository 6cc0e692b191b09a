"""Metrics as lines of JSON in the run folder: `{"step": 1024, "time": 1700000000.0, "values": {"league/games": 7}}`.

The file has a largest size. Where it is reached, every second row of its older part is removed: the newest rows stand
close together and the oldest far apart. A year of metrics takes no more room than a day's.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from league.errors import StorageError
from league.run.monitor.sink import SinkContext
from league.store.storage import Storage

KEPT_WHOLE = 0.25
"""Fraction of the file, at its newest end, that keeps all of its rows when the rest is thinned."""


LAST_ROW_BYTES = 1 << 20
"""Of the end of a file, in which the newest rows are looked for."""


class MetricRow(msgspec.Struct):
    """One line. step: env steps; time: wall time, seconds since 1970; values: metric name -> finite value."""

    step: int
    time: float
    values: dict[str, float]


def last_row(path: Path) -> MetricRow | None:
    """The newest whole row of a file of metrics; None where there is none yet."""
    return next(_newest_rows(path), None)


def last_value(path: Path, metric: str) -> float | None:
    """The newest value of a metric, not far from the end of its file; None where there is none."""
    return next((row.values[metric] for row in _newest_rows(path) if metric in row.values), None)


def _newest_rows(path: Path) -> Iterator[MetricRow]:
    """Whole rows from the newest one on, of the last `LAST_ROW_BYTES`."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - LAST_ROW_BYTES, 0))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        row = decode_row(line)
        if row is not None:
            yield row


class JsonlSink:
    """Appends to one file. On a full disk rows are dropped and counted, and the run continues.

    Args:
      max_bytes: size at which older rows are thinned; None for a file that may grow.
    """

    def __init__(
        self,
        path: Path,
        *,
        storage: Storage,
        clock: Callable[[], float],
        warn: Callable[[str], None],
        max_bytes: int | None = None,
    ) -> None:
        self._path = path
        self._storage = storage
        self._clock = clock
        self._warn = warn
        self._max_bytes = max_bytes
        self._size = path.stat().st_size if path.exists() else 0
        self._closed = False
        self.num_dropped = 0

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        return self._size

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self._closed:
            return
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        line = msgspec.json.encode(MetricRow(step=int(step), time=self._clock(), values=finite))
        try:
            self._storage.append_line(self._path, line)
            self._size += len(line) + 1
            if self._max_bytes is not None and self._size > self._max_bytes:
                self._thin()
        except StorageError as error:
            self.num_dropped += 1
            if self.num_dropped == 1:
                self._warn(f"Metrics are not being kept: {error} Training continues.")

    def close(self) -> None:
        self._closed = True

    def _thin(self) -> None:
        """Drop every second row of the older part; where the file is gone meanwhile, there is nothing to thin."""
        size, self._size = self._size, 0
        with contextlib.suppress(FileNotFoundError):
            thinned = thin(self._storage.read_bytes(self._path, max_bytes=2 * size))
            self._storage.atomic_write_bytes(self._path, thinned, durable=False)
            self._size = len(thinned)


def open_jsonl_sink(context: SinkContext) -> JsonlSink:
    """metrics.jsonl in the run folder."""
    return JsonlSink(
        context.run_path / "metrics.jsonl",
        storage=context.storage,
        clock=context.clock,
        warn=context.warn,
        max_bytes=context.metrics_bytes,
    )


def thin(content: bytes) -> bytes:
    """Lines without every second one of their older part; the first and the newest `KEPT_WHOLE` of them stay."""
    lines = content.splitlines(keepends=True)
    older = len(lines) - int(KEPT_WHOLE * len(lines))
    return b"".join([*lines[:older:2], *lines[older:]])


def decode_row(line: bytes) -> MetricRow | None:
    """The row of a line; None for one that a crash has torn."""
    try:
        return msgspec.json.decode(line, type=MetricRow)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
