"""Rows that wait for their upload: files of a few MiB each, of which the reader removes what it has handed over.

One process appends, another reads; neither ever changes a byte that is there. The first file has the name of the spool
and the next ones a number, always rising. The writer moves to the next file when one is full and never comes back. So
the reader may remove a file once there is a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from league.errors import StorageError
from league.run.monitor.jsonl_sink import JsonlSink, decode_row
from league.store.storage import Storage
from league.wording import counted

SEGMENT_BYTES = 4 << 20
_MAX_PLACE_BYTES = 64
_READ_BYTES = 1 << 20


class Spool:
    """The end that is written to.

    Args:
      path: of the first file. max_bytes: of all files together; beyond it the oldest are dropped unread.
      clock, warn, storage: see `SinkContext`.
      segment_bytes: size at which a file is full.
    """

    def __init__(
        self,
        path: Path,
        *,
        storage: Storage,
        clock: Callable[[], float],
        warn: Callable[[str], None],
        max_bytes: int,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._path = path
        self._storage = storage
        self._clock = clock
        self._warn = warn
        self._max_bytes = max_bytes
        self._segment_bytes = min(segment_bytes, max(max_bytes // 2, 1))
        self._number = max(segments(path), default=0)
        self._sink = self._open()
        self.num_lost = 0

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append a row; see `MetricSink.log`."""
        self._sink.log(step, values)
        if self._sink.num_bytes > self._segment_bytes:
            self._number += 1
            self._sink = self._open()
            self._keep_below_the_limit()

    def close(self) -> None:
        """No row is taken afterwards; may be called twice."""
        self._sink.close()
        if self.num_lost:
            self._warn(f"{counted(self.num_lost, 'row')} of metrics were dropped before they could be uploaded.")
            self.num_lost = 0

    def _open(self) -> JsonlSink:
        path = segment_path(self._path, self._number)
        return JsonlSink(path, storage=self._storage, clock=self._clock, warn=self._warn)

    def _keep_below_the_limit(self) -> None:
        found = segments(self._path)
        sizes = {number: _size(path) for number, path in found.items()}
        for number in sorted(found)[:-1]:
            if sum(sizes.values()) + self._segment_bytes <= self._max_bytes:
                return
            try:
                rows = found[number].read_bytes().count(b"\n")
                self._storage.remove(found[number])
            except (OSError, StorageError):  # uploaded and removed meanwhile, or still there for the next time
                continue
            del sizes[number]
            if not self.num_lost:
                self._warn(
                    "Metrics are not being uploaded fast enough: the oldest of those that wait are dropped. "
                    "metrics.jsonl keeps them. Training continues."
                )
            self.num_lost += rows


class SpoolReader:
    """Complete rows of the spool from where the last process stopped; the position is kept beside the spool."""

    def __init__(self, spool: Path, *, storage: Storage) -> None:
        self._spool = spool
        self._place = spool.with_name("uploaded")
        self._storage = storage
        self._number, self._offset = self._stored_place()

    def rows(self) -> list[tuple[int, float, dict[str, float]]]:
        """(step, time, values) of the next rows, oldest first, without torn lines; empty where there are no more."""
        while True:
            newer = [number for number in segments(self._spool) if number > self._number]  # before the read
            block = self._read()
            if block or not newer:
                break
            self._number, self._offset = min(newer), 0
        decoded = [decode_row(line) for line in block.splitlines()]
        return [(row.step, row.time, row.values) for row in decoded if row is not None]

    def keep_place(self) -> None:
        """Remember that all rows so far were handed over, and remove the files of which nothing is left."""
        place = f"{self._number} {self._offset}".encode()
        self._storage.atomic_write_bytes(self._place, place, durable=False)
        for number, path in segments(self._spool).items():
            if number < self._number:
                self._storage.remove(path)

    def _read(self) -> bytes:
        try:
            with segment_path(self._spool, self._number).open("rb") as file:
                file.seek(self._offset)
                block = file.read(_READ_BYTES)
                while b"\n" not in block and (more := file.read(_READ_BYTES)):  # a row of very many metrics
                    block += more
        except FileNotFoundError:
            return b""
        block = block[: block.rfind(b"\n") + 1]
        self._offset += len(block)
        return block

    def _stored_place(self) -> tuple[int, int]:
        found = segments(self._spool)
        first = min(found, default=0)
        try:
            number, offset = map(int, self._storage.read_bytes(self._place, max_bytes=_MAX_PLACE_BYTES).split())
        except (FileNotFoundError, StorageError, ValueError):
            return first, 0
        known = first <= number <= max(found, default=0)
        return (number, offset) if known and 0 <= offset <= _size(segment_path(self._spool, number)) else (first, 0)


def segment_path(spool: Path, number: int) -> Path:
    """The file of that number."""
    return spool if number == 0 else spool.with_name(f"{spool.stem}-{number}{spool.suffix}")


def segments(spool: Path) -> dict[int, Path]:
    """Number -> file, of those that are there."""
    numbered = spool.parent.glob(f"{spool.stem}-*{spool.suffix}")
    found = {int(name): path for path in numbered if (name := path.stem.rpartition("-")[2]).isdecimal()}
    return {0: spool, **found} if spool.exists() else found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
