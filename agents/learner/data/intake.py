"""Blocks on their way into an update: the age of their decisions or episodes, and the time spent waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from league.agents.unroll.device_unrolls import AnyRows, DeviceUnrolls

MAX_COUNTED_AGE = 1023
"""Age in versions from which decisions on a device count as equally old; they are a few updates old."""


class Intake:
    """Passes blocks on and records the age of their decisions, or episodes, and the time spent waiting for them."""

    def __init__(self, blocks: Iterable[AnyRows], *, version: int, clock: Callable[[], float]) -> None:
        self._blocks = iter(blocks)
        self._version = version
        self._clock = clock
        self._ages: list[NDArray[np.int32]] = []
        self._counted: list[Tensor] = []  # on a device: decisions of each age, read when the update has ended
        self.waited_s = 0.0

    def __iter__(self) -> Iterator[AnyRows]:
        while True:
            start = self._clock()
            block = next(self._blocks, None)
            self.waited_s += self._clock() - start
            if block is None:
                return
            if isinstance(block, DeviceUnrolls):
                self._counted.append(block.decisions_by_age(self._version, limit=MAX_COUNTED_AGE))
            else:
                # Actors may be ahead of a learner that returned to a restart state: their decisions count as new.
                ages = self._version - block.decided_versions
                self._ages.append(np.maximum(ages, 0, out=ages))
            yield block

    def ages(self) -> NDArray[np.int32]:
        """int32 [decisions], in updates, sorted."""
        every = np.arange(MAX_COUNTED_AGE + 1, dtype=np.int32)
        parts = [*self._ages, *(np.repeat(every, counts.cpu().numpy()) for counts in self._counted)]
        ages = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        ages.sort()
        return ages
