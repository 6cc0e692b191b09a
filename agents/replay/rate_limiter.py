"""Decides who has to wait: the learner, where it has sampled too often, or whoever inserts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RateLimiter:
    """Keeps samples near `samples_per_insert` times the inserts, both in rows.

    Fields:
      samples_per_insert: the aim. min_rows: rows before the first sample.
      error_window: samples by which the two may lie apart, half of them on either side.
      inserts, samples: so far.
    Source: Cassirer et al. 2021, Reverb, section 3.3; its `SampleToInsertRatio`.
    """

    samples_per_insert: float
    min_rows: int
    error_window: float
    inserts: int = 0
    samples: int = 0

    def can_insert(self, rows: int, *, size: int) -> bool:
        """True if that many rows may come. size: rows that are there."""
        return size < self.min_rows or self._ahead(self.inserts + rows) <= self.error_window / 2

    def can_sample(self, rows: int, *, size: int) -> bool:
        """True if that many rows may be sampled. size: rows that are there."""
        return size >= self.min_rows and self._ahead(self.inserts) - rows >= -self.error_window / 2

    def _ahead(self, inserts: int) -> float:
        """Samples that are due after so many inserts, beyond those that there were."""
        return (inserts - self.min_rows) * self.samples_per_insert - self.samples
