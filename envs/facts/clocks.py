"""The cost of calls of a game in processor time, or by the wall where the game sleeps or works in other processes."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

from league.envs.facts.core_speed import Pace, work_s

Clock = Callable[[], float]

SHARE_OF_ITS_OWN = 0.05
"""Of the wall time of calls: processor time from which a game counts as working in this very process."""

WAITS_A_CALL = 0.5
"""Waits of a thread per call from which a game counts as sleeping, or as working in other processes."""


def num_waits() -> int:
    """Times that this thread has waited for something, being interrupted not counted; 1 where nothing tells."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw if hasattr(resource, "RUSAGE_THREAD") else 1


@dataclass(frozen=True)
class Clocks:
    """Seconds of the wall and of this process's processor time, and waits of this thread.

    Costs are processor time, which other programs on the machine do not lengthen. A game that sleeps, or works in
    processes of its own, takes hardly any here, and is measured by the wall. `pace` tells the core's speed.
    """

    wall: Clock = time.perf_counter
    processor: Clock = time.process_time
    waits: Callable[[], int] = num_waits
    pace: Pace = work_s

    def now(self) -> tuple[float, float, int]:
        """All at once."""
        return self.wall(), self.processor(), self.waits()

    def cost_since(self, began: tuple[float, float, int], *, calls: int = 1) -> float:
        """Seconds that so many calls took, of which the first began then.

        Many calls are judged together: a short one may be interrupted for a time that is long beside its own.
        """
        return (self.wall() - began[0]) if self.waited_since(began, calls=calls) else self.processor() - began[1]

    def waited_since(self, began: tuple[float, float, int], *, calls: int = 1) -> bool:
        """True if the calls slept, or worked elsewhere, for nearly all of their time."""
        if self.waits() - began[2] < WAITS_A_CALL * calls:
            return False
        return self.processor() - began[1] < SHARE_OF_ITS_OWN * (self.wall() - began[0])


CLOCKS = Clocks()
