"""Feeds a learner: decodes chunks in threads of its own and provides them as blocks of rows.

The learner starts on the first block of a batch before the last has arrived. Credits hold producers back: nobody may
push more rows than the ring has room for, and nothing is dropped.

Shape letters: B rows of a batch, M microbatches.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, cast

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_list import RowList
from league.agents.learner.data.row_source import ChunkT, RowBlocks, RowSource, SourcePlace
from league.agents.learner.data.source_counts import SourceReport, WaitedSource
from league.agents.learner.errors import FeederError, FeederFullError, FeederTimeoutError
from league.agents.unroll.ring import UnrollRing
from league.agents.unroll.unroll import Unrolls, UnrollSpec

BATCHES_DEEP = 2
"""Batches in the ring: one being learnt from and one being filled."""
GPU_DECODERS = 8
"""Decoding threads beside a GPU: four did not keep one fed. On a CPU the cores have other work."""
END_S = 10.0
"""Longest wait for the decoding threads at the end; each has one chunk in hand at most."""

logger = logging.getLogger(__name__)


def fifo(spec: UnrollSpec, config: LearnerConfig, place: SourcePlace[ChunkT]) -> RowSource[ChunkT]:
    """First in, first out: a started feeder, or rows of the caller's thread where no thread may decode.

    Episodes of evolution strategies are few and small, so that no thread decodes them either.
    """
    if not place.threads or config.evolves:
        return RowList(config, place)
    feeder = Feeder(
        spec,
        config,
        decode=cast("Callable[[ChunkT], Unrolls]", place.decode),
        chunk_rows=place.chunk_rows,
        changed=place.changed,
        threads=place.threads,
        pinned=place.pinned,
    )
    feeder.start()
    return feeder


class Feeder(WaitedSource, Generic[ChunkT]):
    """Decoding threads and a ring buffer of rows.

    Args:
      spec: of the unrolls; config: of the learner.
      decode: a chunk to unrolls. A ValueError refuses a bad one; any other error ends the feeder.
      chunk_rows: most rows of one chunk; the ring is deep enough that a producer only waits while a whole batch is
        ready to be learnt from.
      changed: notified of every event here, for callers that wait for several feeders at once.
      threads: decoding at the same time; with one, rows keep the order of their chunks.
      pinned: see `UnrollRing`.
      clock: seconds.
    """

    def __init__(
        self,
        spec: UnrollSpec,
        config: LearnerConfig,
        *,
        decode: Callable[[ChunkT], Unrolls],
        chunk_rows: int = 1,
        changed: threading.Condition | None = None,
        threads: int = 1,
        pinned: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(
            threading.Condition() if changed is None else changed,
            failed="the decoding thread failed",
            closed="the feeder is closed",
            clock=clock,
        )
        self._batch_rows = config.batch_rows
        self._block_rows = config.batch_rows // config.microbatches
        self._ring = UnrollRing(
            spec,
            capacity=config.batch_rows * max(BATCHES_DEEP, 1 + -(-chunk_rows // config.batch_rows)),
            pinned=pinned,
        )
        self._decode = decode
        self._clock = clock
        self._chunks: queue.SimpleQueue[tuple[ChunkT, int] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"feeder-{number}", daemon=True) for number in range(threads)
        ]
        # Rows since the start: promised to producers, with a place in the ring, written there, released by the learner.
        self._promised = self._placed = self._written = self._freed = 0
        self._written_early: dict[int, int] = {}  # first row -> rows, of chunks behind one that is not written yet

    def start(self) -> None:
        """Start the decoding threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads and wake all that wait; may be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for _ in self._threads:
            self._chunks.put(None)
        deadline = time.monotonic() + END_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                logger.warning("thread %s has not ended after %g s; nobody waits for it", thread.name, END_S)

    @property
    def capacity(self) -> int:
        """Most rows that one chunk may have."""
        return self._ring.capacity

    @property
    def credits(self) -> int:
        """Rows that may be pushed now."""
        with self._changed:
            return self._room()

    @property
    def rows_ready(self) -> int:
        """Rows that are decoded and not yet released.

        Raises:
          FeederError: the feeder is closed or has failed.
        """
        with self._changed:
            self._raise_if_over()
            return self._written - self._freed

    def push(self, chunk: ChunkT, *, num_rows: int, timeout_s: float = 0.0) -> None:
        """Hand over a chunk; returns before it is decoded.

        Args:
          timeout_s: deadline for as many credits.
        Raises:
          FeederFullError: there are not as many credits within the deadline.
          FeederError: the feeder is closed or has failed.
        """
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._is_over() or self._room() >= num_rows, timeout=timeout_s)
            finally:
                self._waiting -= 1
            self._raise_if_over()
            if num_rows < 1 or num_rows > self._room():
                raise FeederFullError(f"a chunk of {num_rows} rows came where there is room for {self._room()}")
            self._promised += num_rows
        self._chunks.put((chunk, num_rows))

    @contextlib.contextmanager
    def batch(self, *, timeout_s: float) -> Iterator[RowBlocks]:
        """The next B rows as M blocks, each as soon as it is ready; views that are valid until the context ends.

        Args:
          timeout_s: deadline for each block.
        Raises:
          FeederTimeoutError: from the iterator, a block did not arrive in time; the rows that came stay in the ring.
            After any other error they are dropped, so that a batch that cannot be learnt from does not return forever.
        """
        start = self._freed
        try:
            yield RowBlocks(self._blocks(start, timeout_s), ahead=self.ahead)
        except FeederError:
            raise
        except BaseException:
            self._free(start + self._batch_rows)
            raise
        self._free(start + self._batch_rows)

    def ahead(self) -> Unrolls | None:
        """The first block of the batch behind the present one, None where it has not come; a view as those of `batch`.

        It stays valid until the context of its own batch ends.
        """
        with self._changed:
            start = self._freed + self._batch_rows
            is_whole = self._written >= start + self._block_rows
        return self._ring.read(at=start, count=self._block_rows) if is_whole else None

    def learnt(self, row_errors: NDArray[np.float32] | None) -> None:
        """As in the protocol of `RowSource`; rows are not looked at again."""

    def _blocks(self, start: int, timeout_s: float) -> Iterator[Unrolls]:
        for at in range(start, start + self._batch_rows, self._block_rows):
            end = at + self._block_rows
            with self._changed:
                with self._counts.waiting():
                    self._changed.wait_for(lambda end=end: self._is_over() or self._written >= end, timeout=timeout_s)  # type: ignore[misc]
                if self._written < end:
                    self._raise_if_over()
                    reason = self._counts.so_far.reason
                    refused = f"; the last chunk refused: {reason}" if reason else ""
                    raise FeederTimeoutError(
                        f"{self._written - start} of {self._batch_rows} rows came in {timeout_s:g} s{refused}"
                    )
            yield self._ring.read(at=at, count=self._block_rows)

    def _serve(self) -> None:
        """The loop of a decoding thread."""
        while (item := self._chunks.get()) is not None and not self._closed:
            try:
                self._store(*item)
            except Exception as error:  # the boundary of this thread: raised again in the caller's
                self._fail(error)
                return

    def _store(self, chunk: ChunkT, num_rows: int) -> None:
        start = self._clock()
        try:
            unrolls = self._decode(chunk)
            if unrolls.num_rows != num_rows:
                raise ValueError(f"a chunk of {unrolls.num_rows} rows was announced as {num_rows}")
            self._ring.check(unrolls)
        except ValueError as error:
            with self._changed:
                self._promised -= num_rows
                self._counts.add(SourceReport(refused=1, reason=str(error)))
                self._changed.notify_all()
            return
        with self._changed:
            place = self._placed
            self._placed += num_rows
        # Credits guarantee that these rows are free: nobody waits for anybody while they are copied.
        self._ring.write(unrolls, at=place)
        with self._changed:
            self._written_early[place] = num_rows
            while self._written in self._written_early:
                self._written += self._written_early.pop(self._written)
            self._counts.add(SourceReport(chunks=1, rows=num_rows, decode_s=self._clock() - start))
            self._changed.notify_all()

    def _free(self, end: int) -> None:
        with self._changed:
            if self._written >= end:  # a batch with missing rows starts again from the same row
                self._freed = end
            self._changed.notify_all()

    def _room(self) -> int:
        return self._ring.capacity - (self._promised - self._freed)
