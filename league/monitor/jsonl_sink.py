"""Metrics as lines of JSON in the run folder: `{"step": 1024, "time": 1700000000.0, "values": {"league/games": 7}}`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from league.errors import StorageError
from league.monitor.sink import SinkContext
from league.store.storage import Storage


class MetricRow(msgspec.Struct):
    """One line. step: env steps; time: wall time, seconds since 1970; values: metric name -> finite value."""

    step: int
    time: float
    values: dict[str, float]


class JsonlSink:
    """Appends to one file. On a full disk rows are dropped and counted, and the run goes on."""

    def __init__(
        self, path: Path, *, storage: Storage, clock: Callable[[], float], warn: Callable[[str], None]
    ) -> None:
        self._path = path
        self._storage = storage
        self._clock = clock
        self._warn = warn
        self._closed = False
        self.num_dropped = 0

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """As in the protocol."""
        if self._closed:
            return
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        line = msgspec.json.encode(MetricRow(step=int(step), time=self._clock(), values=finite))
        try:
            self._storage.append_line(self._path, line)
        except StorageError as error:
            self.num_dropped += 1
            if self.num_dropped == 1:
                self._warn(f"Metrics are not being kept: {error} Training goes on.")

    def close(self) -> None:
        """As in the protocol."""
        self._closed = True


def open_jsonl_sink(context: SinkContext) -> JsonlSink:
    """metrics.jsonl in the run folder."""
    return JsonlSink(
        context.run_path / "metrics.jsonl", storage=context.storage, clock=context.clock, warn=context.warn
    )


def decode_row(line: bytes) -> MetricRow | None:
    """The row of a line; None for one that a crash has torn."""
    try:
        return msgspec.json.decode(line, type=MetricRow)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
