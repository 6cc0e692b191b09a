"""The clock of one probe, which counts what it has used of its limit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from league.processes.processor_time import children_cpu_seconds

LOOK_EVERY_S = 0.2
"""Wall time between two sums over the programs."""


class ProbeClock:
    """Processor seconds since it was made, of this process and the programs that it started.

    Where wall time passes faster than the limit allows, as with a program that answers late, it counts that instead:
    at `ends_at` the whole limit is used.

    Args:
      limit_s: processor seconds. ends_at: in seconds of `monotonic`.
      own, programs: processor seconds so far, of this process and of those below it.
    """

    def __init__(
        self,
        limit_s: float,
        *,
        ends_at: float,
        monotonic: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = time.process_time,
        programs: Callable[[], float] = lambda: children_cpu_seconds(os.getpid()),
    ) -> None:
        self._limit_s = limit_s
        self._monotonic, self._own, self._programs = monotonic, own, programs
        self._begun = self._looked = monotonic()
        self._wall_s = max(ends_at - self._begun, 1e-9)
        self._before, self._of_programs = own() + programs(), programs()

    def __call__(self) -> float:
        """Seconds of the limit that are used."""
        now = self._monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked, self._of_programs = now, self._programs()
        used = self._own() + self._of_programs - self._before
        return max(used, self._limit_s * (now - self._begun) / self._wall_s)
