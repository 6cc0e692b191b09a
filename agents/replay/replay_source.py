"""The row source that keeps rows and samples each of them several times.

A chunk is decoded and stored by whoever pushes it, so that what has been answered is in the replay.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import ChunkT, RowBlocks, SourcePlace
from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.learner.data.source_counts import SourceReport, WaitedSource
from league.agents.learner.errors import FeederError, FeederFullError, FeederTimeoutError
from league.agents.replay.replay_table import RateLimiter, ReplayTable, Sample
from league.agents.replay.row_bytes import RowLayout
from league.agents.replay.row_files import MappedRows, NoDiskSpaceError, ReplayMemory, memory_of
from league.agents.unroll.device_unrolls import AnyUnrolls, DeviceUnrolls
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.unroll.ring import require_rows
from league.agents.unroll.unroll import Unrolls, UnrollSpec

FILE = "rows"
"""The file of a player's rows in its folder."""


class ReplaySource(WaitedSource, Generic[ChunkT]):
    """A table of rows behind a rate limiter; see `RowSource`.

    Args:
      spec: of the unrolls. config: of the learner.
      place: where no thread may decode, nobody can wait for anybody: a batch is due as soon as the rows for it are in.
      options: of the replay.
    """

    def __init__(
        self, spec: UnrollSpec, config: LearnerConfig, place: SourcePlace[ChunkT], options: ReplayConfig
    ) -> None:
        super().__init__(place.changed)
        self._spec = spec
        self._place = place
        self._alone = not place.threads
        self._gamma = config.gamma
        self._initial = options.initial
        self._batch_rows = config.batch_rows
        self._block_rows = config.batch_rows if self._alone else config.batch_rows // config.microbatches
        layout = self._layout = RowLayout(spec)
        window = 0.0 if self._alone else options.window * config.batch_rows
        limiter = RateLimiter(options.samples_per_insert, options.min_rows, window)
        self._memory = _memory(layout, place, options)
        self.table = ReplayTable(layout, self._memory, options, limiter, np.random.default_rng(place.seed))
        self._sample: Sample | None = None

    @property
    def capacity(self) -> int:
        """As in the protocol; a chunk larger than a batch could wait for ever."""
        return self.table.capacity if self._alone else min(self.table.capacity, self._batch_rows)

    @property
    def rows_ready(self) -> int:
        """As in the protocol: all or none."""
        with self._changed:
            self._raise_if_over()
            return self._batch_rows if self._can_sample() else 0

    def push(self, chunk: ChunkT, *, num_rows: int, timeout_s: float = 0.0) -> None:
        """As in the protocol; returns once the rows are stored. One that cannot be decoded is counted."""
        start = time.perf_counter()
        with self._changed:
            self._raise_if_over()
        unrolls = self._decoded(chunk, num_rows)
        if unrolls is None:
            return
        decoded_s = time.perf_counter() - start
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._closed or self._has_room(num_rows), timeout=timeout_s)
            finally:
                self._waiting -= 1
            self._raise_if_over()
            if not self._has_room(num_rows):
                raise FeederFullError(f"a chunk of {num_rows} rows came before the rows in the replay were sampled")
            try:
                self.table.insert(unrolls, errors=self._first_errors(unrolls))
            except NoDiskSpaceError as error:
                raise FeederFullError(str(error)) from error
            self._counts.add(SourceReport(chunks=1, rows=num_rows, decode_s=decoded_s))
            self._changed.notify_all()

    @contextlib.contextmanager
    def batch(self, *, timeout_s: float) -> Iterator[RowBlocks]:
        sample = self._sample = self.sample(timeout_s=timeout_s)
        blocks = blocks_of(self._layout, sample.block, sample.weights, rows=self._block_rows)
        yield RowBlocks(blocks, fresh_steps=sample.fresh_steps)
        self._sample = None

    def sample(self, *, timeout_s: float) -> Sample:
        """The rows of the next batch. Raises FeederTimeoutError, FeederClosedError."""
        with self._changed:
            with self._counts.waiting():
                self._changed.wait_for(lambda: self._closed or self._can_sample(), timeout=timeout_s)
            self._raise_if_over()
            if not self._can_sample():
                raise FeederTimeoutError(self._too_few(timeout_s))
            self._changed.notify_all()
            return self.table.sample(self._batch_rows)

    def learnt(self, row_errors: NDArray[np.float32] | None) -> None:
        if row_errors is not None and self._sample is not None:
            self.update(self._sample, row_errors)

    def update(self, sample: Sample, row_errors: NDArray[np.float32]) -> None:
        """Give rows of a sample the priority of their errors; after the end nothing is done."""
        with self._changed:
            if not self._closed:
                self.table.update(sample, row_errors)

    def close(self) -> None:
        """As in the protocol; a file stays."""
        with self._changed:
            self._closed = True
            self._memory.close()
            self._changed.notify_all()

    def _decoded(self, chunk: ChunkT, num_rows: int) -> Unrolls | None:
        """The rows of a chunk, checked; None where it was refused."""
        try:
            rows = self._place.decode(chunk)
            assert not isinstance(rows, SeatEpisodes), "evolution strategies learn from no replay"
            unrolls = on_host(rows)
            if unrolls.num_rows != num_rows:
                raise ValueError(f"a chunk of {unrolls.num_rows} rows was announced as {num_rows}")
            require_rows(unrolls, self._layout.example, self._spec.game)
        except ValueError as error:
            with self._changed:
                self._counts.add(SourceReport(refused=1, reason=str(error)))
            return None
        return unrolls

    def _first_errors(self, unrolls: Unrolls) -> NDArray[np.float32] | None:
        return first_errors(unrolls, gamma=self._gamma) if self._initial == "actor" else None

    def _has_room(self, rows: int) -> bool:
        return self._alone or self.table.limiter.can_insert(rows, size=self.table.size)

    def _can_sample(self) -> bool:
        return self.table.limiter.can_sample(self._batch_rows, size=self.table.size)

    def _too_few(self, timeout_s: float) -> str:
        limiter = self.table.limiter
        if self.table.size < limiter.min_rows:
            return f"{self.table.size} of {limiter.min_rows} rows are in the replay after {timeout_s:g} s"
        return (
            f"{limiter.samples} samples of {limiter.inserts} rows are enough: none came in {timeout_s:g} s that could "
            "be sampled more"
        )


def blocks_of(
    layout: RowLayout, block: NDArray[np.uint8], weights: NDArray[np.float32] | None, *, rows: int
) -> Iterator[Unrolls]:
    """Views of the rows of a batch, so many at a time. weights: float32 [B], of importance."""
    unrolls = replace(layout.unrolls(block), weights=weights)
    for start in range(0, unrolls.num_rows, rows):
        yield unrolls.rows(start, start + rows)


def on_host(rows: AnyUnrolls) -> Unrolls:
    """Rows in the memory of the host; those of a device are copied."""
    if isinstance(rows, DeviceUnrolls):
        return Unrolls(**rows.converted(torch.Tensor.numpy if rows.resets.device.type == "cpu" else _fetched))
    return rows


def _fetched(tensor: torch.Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.cpu().numpy()
    return array


def _memory(layout: RowLayout, place: SourcePlace[ChunkT], options: ReplayConfig) -> ReplayMemory:
    if options.storage == "memory":
        return memory_of(layout, options.capacity)
    if place.folder is None:
        raise FeederError("learner.row_source.storage: file needs a folder, and this host has none")
    return MappedRows(place.folder / FILE, layout, options.capacity, generation=place.generation)


MAX_SHARE = 0.9
"""Weight of a row's largest error, that of its mean being the rest (Kapturowski et al. 2019, R2D2, section 2.3)."""


def first_errors(unrolls: Unrolls, *, gamma: float) -> NDArray[np.float32]:
    """float32 [R], errors of one step under the recorded values; NaN for a row without a step whose end is recorded.

    The value of the bootstrap observation is not recorded: the row was complete before the policy saw it. So only the
    first T - 1 decisions count, and of those none before the marker of a truncation.

    Source: Horgan et al. 2018, Ape-X, section 3: actors compute the first priorities from their own values.
    """
    values = unrolls.values
    assert values is not None, "checked when the configuration was loaded"
    discounts = unrolls.discounts[:, :-1]
    errors = np.abs(unrolls.rewards[:, :-1] + gamma * discounts * values[:, 1:] - values[:, :-1])
    counts = unrolls.valid[:, :-1] & (unrolls.valid[:, 1:] | (discounts == 0.0))
    number = counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean = np.where(counts, errors, 0.0).sum(axis=1) / number
    largest = np.where(counts, errors, -np.inf).max(axis=1, initial=-np.inf)
    mixed = MAX_SHARE * largest + (1.0 - MAX_SHARE) * mean
    return np.where(number > 0, mixed, np.nan).astype(np.float32)
