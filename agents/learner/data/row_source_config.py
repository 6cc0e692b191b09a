"""The registry of row sources, and the options of the built-in ones, checked without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

MAX_ROWS = 1 << 32
"""Most rows of one replay."""


@dataclass(frozen=True)
class FifoConfig:
    """Options of `fifo`: it has none."""


@dataclass(frozen=True)
class ReplayConfig:
    """Options of `replay`.

    Fields:
      capacity: rows that are kept. min_rows: rows that are there before the first batch is sampled.
      samples_per_insert: times that a row is sampled on average.
      error_window: batches by which the samples may lie apart from that average, half of them on either side; null for
        twice the least that lets actors and the learner take turns.
      alpha: power of a row's error in its probability; 0 samples uniformly.
      beta: power of the importance weights that correct for it; 0 for none, 1 corrects in full.
      min_priority: added to each error, so that no row is out of reach.
      initial: priority of a new row: the largest so far ("max"), or from the values that the actors recorded ("actor").
      evict: the row that makes room for a new one: the oldest, or the one of the lowest priority.
      storage: "memory", or "file" for a file in the run folder, which survives its host and takes no memory of its own.
    Source: Schaul et al. 2016, Prioritized Experience Replay; the limit is that of Reverb (Cassirer et al. 2021).
    """

    capacity: int = 65_536
    min_rows: int = 1_024
    samples_per_insert: float = 8.0
    error_window: float | None = None
    alpha: float = 0.6
    beta: float = 0.4
    min_priority: float = 1e-6
    initial: Literal["max", "actor"] = "max"
    evict: Literal["oldest", "lowest"] = "oldest"
    storage: Literal["memory", "file"] = "memory"

    @property
    def least_window(self) -> float:
        """Batches of the smallest window in which neither actors nor the learner can wait for each other for ever."""
        return 2.0 * max(1.0, self.samples_per_insert)

    @property
    def window(self) -> float:
        """`error_window`, its default filled in."""
        return 2.0 * self.least_window if self.error_window is None else self.error_window

    def share(self, parts: int) -> ReplayConfig:
        """The options of one of so many hosts among which the rows are spread; each keeps the whole window."""
        return replace(self, capacity=-(-self.capacity // parts), min_rows=-(-self.min_rows // parts))

    def problems(self) -> list[str]:
        found = []
        if not 1 <= self.capacity <= MAX_ROWS:
            found.append(f"capacity: {self.capacity} rows are not between 1 and {MAX_ROWS}")
        if not 1 <= self.min_rows <= self.capacity:
            found.append(f"min_rows: {self.min_rows} rows are not between 1 and the capacity of {self.capacity}")
        for name in ("samples_per_insert", "min_priority"):
            if not 0 < getattr(self, name) < math.inf:
                found.append(f"{name}: {getattr(self, name)} must be greater than 0 and finite")
        for name in ("alpha", "beta"):
            if not 0 <= getattr(self, name) <= 1:
                found.append(f"{name}: {getattr(self, name)} is not in [0, 1]")
        if self.error_window is not None and not self.least_window <= self.error_window < math.inf:
            found.append(
                f"error_window: {self.error_window:g} batches are less than 2 * max(1, samples_per_insert) = "
                f"{self.least_window:g}: actors and the learner could wait for each other for ever"
            )
        return found


ROW_SOURCES: Mapping[str, str] = {
    "fifo": "league.agents.learner.data.feeder:fifo",
    "replay": "league.agents.replay.remote_source:replay",
}
"""Name of `learner.row_source` -> "module:attribute" of a builder of a `row_source.RowSource`."""

ROW_SOURCE_OPTIONS: Mapping[str, type] = {"fifo": FifoConfig, "replay": ReplayConfig}
"""Name of a registered row source -> the record of its options."""
