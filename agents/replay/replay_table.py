"""A table of rows that are sampled in proportion to their priorities, and replaced once it is full.

Knows no threads. Shape letters: C capacity, B rows of a batch, R rows of a chunk, W bytes of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.replay.priority_tree import PriorityTree
from league.agents.replay.row_bytes import RowLayout, checksums_of, computed_checksums, serials_of
from league.agents.replay.row_files import INSERTS, SAMPLES, ReplayMemory
from league.agents.unroll.unroll import Unrolls

CHECKED_AT_ONCE = 4096
"""Rows of a file that are checked together when it is opened again."""


@dataclass(frozen=True)
class Sample:
    """Sampled rows.

    Fields:
      block: uint8 [B, W], a copy of whole rows, see `RowLayout`. slots, serials: [B], of the rows.
      weights: float32 [B], importance weights, the largest 1; None for a uniform sample.
      fresh_steps: valid decisions of the rows that were never sampled before, each row counted once.
    """

    block: NDArray[np.uint8]
    slots: NDArray[np.int64]
    serials: NDArray[np.uint64]
    weights: NDArray[np.float32] | None
    fresh_steps: int


class ReplayTable:
    """C rows with priorities, over a memory that may hold rows of an earlier process.

    Args:
      layout: of a row. memory: of C rows. options: of the replay.
      limiter: its counts are kept in the memory. rng: of the samples.
    """

    def __init__(
        self,
        layout: RowLayout,
        memory: ReplayMemory,
        options: ReplayConfig,
        limiter: RateLimiter,
        rng: np.random.Generator,
    ) -> None:
        self.limiter = limiter
        self.capacity = options.capacity
        self.size = 0
        self.torn = 0
        self._layout = layout
        self._memory = memory
        self._options = options
        self._rng = rng
        self._tree = PriorityTree(options.capacity, tracks_lowest=options.evict == "lowest")
        self._serials = np.zeros(options.capacity, np.uint64)  # 0: no row
        self._next_serial = 1
        self._next_slot = 0
        self._highest = 1.0
        if memory.reopened:
            self._restore()

    def insert(self, unrolls: Unrolls, *, errors: NDArray[np.float32] | None = None) -> NDArray[np.uint64]:
        """Store R rows in the place of others where there is no room; returns their serials [R].

        Args:
          unrolls: R rows, at most C, of the layout's fields, dtypes and shapes.
          errors: float32 [R], their first errors; None, or NaN for one of them, for the largest so far.
        Raises:
          NoDiskSpaceError: nothing was stored or replaced.
        """
        rows = unrolls.num_rows
        slots = self._slots_for(rows)
        self._memory.reserve(int(slots.max(initial=-1)) + 1)
        serials = np.arange(self._next_serial, self._next_serial + rows, dtype=np.uint64)
        block = self._layout.filled(unrolls, serials)
        checksums = computed_checksums(block)
        self._clear(slots)
        self._memory.rows[slots] = block
        self._memory.sampled[slots] = 0
        first = np.full(rows, self._highest, np.float32)
        self._set_errors(slots, first if errors is None else np.where(np.isfinite(errors), errors, first))
        checksums_of(self._memory.rows)[slots] = checksums  # last: a row without it was not written to its end
        self._serials[slots] = serials
        self._next_serial += rows
        self._next_slot = (self._next_slot + rows) % self.capacity
        self.size += rows
        self.limiter.inserts += rows
        self._memory.head[INSERTS] = self.limiter.inserts
        return serials

    def sample(self, rows: int) -> Sample:
        """Draw B rows with replacement, one from each of B equal shares of the total priority.

        Source: Schaul et al. 2016, section 3.3 and appendix B.2.1; weights: section 3.4.
        """
        points = (np.arange(rows) + self._rng.random(rows)) / rows
        slots = self._tree.draw(points)
        block = self._memory.rows.take(slots, axis=0)
        fresh_slots, first = np.unique(slots, return_index=True)
        first = first[self._memory.sampled[fresh_slots] == 0]
        times = self._memory.sampled[slots]
        self._memory.sampled[slots] = times + (times < np.iinfo(np.uint8).max)
        self.limiter.samples += rows
        self._memory.head[SAMPLES] = self.limiter.samples
        return Sample(
            block=block,
            slots=slots,
            serials=self._serials[slots],
            weights=self._weights(slots),
            fresh_steps=int(np.count_nonzero(self._layout.unrolls(block).valid[first])),
        )

    def update(self, sample: Sample, errors: NDArray[np.float32]) -> None:
        """Give rows of a sample the priority of their errors [B]; those that were replaced meanwhile keep theirs."""
        kept = (self._serials[sample.slots] == sample.serials) & np.isfinite(errors)
        self._set_errors(sample.slots[kept], errors[kept])

    def _weights(self, slots: NDArray[np.int64]) -> NDArray[np.float32] | None:
        if not self._options.alpha or not self._options.beta:
            return None
        scaled = self._tree.weights(slots) / self._tree.total * self.size
        weights = scaled**-self._options.beta
        scaled_down: NDArray[np.float32] = (weights / weights.max()).astype(np.float32)
        return scaled_down

    def _set_errors(self, slots: NDArray[np.int64], errors: NDArray[np.float32]) -> None:
        """Keep the errors themselves; alpha is applied once, on the way into the tree."""
        self._memory.errors[slots] = errors
        self._highest = max(self._highest, float(errors.max(initial=0.0)))
        self._tree.set(slots, (np.abs(errors, dtype=np.float64) + self._options.min_priority) ** self._options.alpha)

    def _slots_for(self, rows: int) -> NDArray[np.int64]:
        """The slots of the next rows: free ones in order, then those whose rows make room."""
        assert rows <= self.capacity, "looked at before"
        following = (self._next_slot + np.arange(rows, dtype=np.int64)) % self.capacity
        if self._options.evict == "oldest" or not self._serials[following].any():
            return following
        free = np.flatnonzero(self._serials == 0)[:rows] if self.size < self.capacity else following[:0]
        return np.concatenate([free, self._tree.lowest(rows - free.size)]) if free.size < rows else free

    def _clear(self, slots: NDArray[np.int64]) -> None:
        """Forget the rows of these slots, so that none is half old and half new."""
        self.size -= int(np.count_nonzero(self._serials[slots]))
        self._serials[slots] = 0
        checksums_of(self._memory.rows)[slots] = 0

    def _restore(self) -> None:
        """Take over every row of the memory that is whole; the others count as torn."""
        memory = self._memory
        borne = checksums_of(memory.rows)
        for start in range(0, self.capacity, CHECKED_AT_ONCE):
            written = start + np.flatnonzero(borne[start : start + CHECKED_AT_ONCE])
            whole = written[computed_checksums(memory.rows[written]) == borne[written]]
            self.torn += written.size - whole.size
            self._serials[whole] = serials_of(memory.rows)[whole]
            borne[np.setdiff1d(written, whole)] = 0
        slots = np.flatnonzero(self._serials)
        self.size = slots.size
        errors = np.where(np.isfinite(memory.errors[slots]), memory.errors[slots], 0.0).astype(np.float32)
        self._set_errors(slots, errors)
        self.limiter.inserts, self.limiter.samples = int(memory.head[INSERTS]), int(memory.head[SAMPLES])
        if slots.size:
            newest = int(self._serials.argmax())
            self._next_serial, self._next_slot = int(self._serials[newest]) + 1, (newest + 1) % self.capacity


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
