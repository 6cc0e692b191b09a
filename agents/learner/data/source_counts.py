"""The counts of a row source between two reports, and what all sources have at which callers wait."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from league.agents.learner.errors import FeederClosedError, FeederError


@dataclass(frozen=True)
class SourceReport:
    """Counts since the last report.

    Fields:
      chunks, rows: decoded. refused: invalid chunks; reason: of the last of them.
      decode_s: seconds of the decoding threads together. waited_s: seconds in which the learner waited for rows.
      idle_fraction: waited_s divided by the seconds since the last report, in [0, 1].
    """

    chunks: int = 0
    rows: int = 0
    refused: int = 0
    reason: str = ""
    decode_s: float = 0.0
    waited_s: float = 0.0
    idle_fraction: float = 0.0


class SourceCounts:
    """Adds up what is counted until it is taken. Whoever calls holds the lock of the source.

    Args:
      clock: seconds.
    Attributes:
      so_far: since the last report.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.so_far = SourceReport()
        self._clock = clock
        self._reported_at = clock()

    def add(self, more: SourceReport) -> None:
        """Count what has come."""
        numbers = (field.name for field in fields(more) if field.name != "reason")
        added = {name: getattr(self.so_far, name) + getattr(more, name) for name in numbers}
        self.so_far = replace(self.so_far, reason=more.reason or self.so_far.reason, **added)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Context in which the learner waits for rows."""
        began = self._clock()
        yield
        self.add(SourceReport(waited_s=self._clock() - began))

    def take(self) -> SourceReport:
        """The counts, which begin again."""
        counts, now = self.so_far, self._clock()
        passed = max(now - self._reported_at, 1e-9)
        self.so_far, self._reported_at = SourceReport(), now
        return replace(counts, idle_fraction=min(counts.waited_s / passed, 1.0))


class WaitedSource:
    """A row source that threads wait for: whose producers wait, what it has counted, and its end.

    Args:
      changed: its lock, notified of every event. failed, closed: sentences about its two ends, for people.
      clock: seconds.
    """

    def __init__(
        self,
        changed: threading.Condition,
        *,
        failed: str = "",
        closed: str = "the replay is closed",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._changed = changed
        self._words = failed, closed
        self._counts = SourceCounts(clock)
        self._waiting = 0
        self._closed = False
        self._error: BaseException | None = None

    @property
    def waiting(self) -> int:
        """Chunks that wait in `push`, for credits or on their way to a host."""
        with self._changed:
            return self._waiting

    def report(self) -> SourceReport:
        """Counts since the last call."""
        with self._changed:
            return self._counts.take()

    def _fail(self, error: BaseException) -> None:
        """End, as a thread of the source has ended; whoever waits or asks is raised this."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _is_over(self) -> bool:
        return self._closed or self._error is not None

    def _raise_if_over(self) -> None:
        failed, closed = self._words
        if self._error is not None:
            raise FeederError(f"{failed}: {self._error}") from self._error
        if self._closed:
            raise FeederClosedError(closed)
