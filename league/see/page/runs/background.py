"""Computations beside the requests of a page: each starts from a copy, and its newest result is shown meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from league.errors import LeagueError

T = TypeVar("T")

MAX_SHARE = 0.02
"""Fraction of the time that repeating a computation may take: one of a second is followed by fifty without it."""


@dataclass(frozen=True)
class Computed(Generic[T]):
    """The newest result of a computation.

    Fields:
      value: None before the first is ready, and where it failed.
      seq: number of the last event behind it; 0 before the first.
      error: one sentence where it failed, else empty.
    """

    value: T | None = None
    seq: int = 0
    error: str = ""


class Background:
    """The computations of one run; `get` is called under the lock of the run.

    Args:
      pool: runs them. ready: called when a result is there.
      monotonic: seconds that never go back.
    """

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        *,
        ready: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._ready, self._monotonic = pool, ready, monotonic
        self._lock = threading.Lock()
        self._results: dict[str, Computed[object]] = {}
        self._due: dict[str, float] = {}
        self._busy: set[str] = set()

    def get(
        self, key: str, seq: int, inputs: Callable[[], object], function: Callable[[object], object], every_s: float
    ) -> Computed[object]:
        """The newest result; a newer one is begun where the journal has moved on and one is due."""
        known = self._results.get(key, Computed())
        with self._lock:
            if key in self._busy or known.seq == seq or self._monotonic() < self._due.get(key, 0.0):
                return known
        given = inputs()
        with self._lock:
            self._busy.add(key)
        self._pool.submit(self._make, key, seq, given, function, every_s)
        return known

    def _make(self, key: str, seq: int, given: object, function: Callable[[object], object], every_s: float) -> None:
        began = self._monotonic()
        try:
            found: Computed[object] = Computed(function(given), seq)
        except LeagueError as error:
            found = Computed(None, seq, str(error))
        except Exception as error:  # boundary: of a thread that nobody waits for; the page shows it
            found = Computed(None, seq, f"{type(error).__name__}: {error}")
        took = self._monotonic() - began
        with self._lock:
            self._results[key] = found
            self._due[key] = self._monotonic() + max(every_s, took / MAX_SHARE)
            self._busy.discard(key)
        self._ready()
