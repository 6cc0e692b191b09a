"""The row source whose rows other processes keep, and the choice between it and a replay of this process.

A chunk goes whole to one host, chosen by its checksum, and a batch comes whole from one host. While a batch is learnt
from, the next one of every host is on its way.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.remote_rows import RemoteBatch, RemoteRows, RowsLostError
from league.agents.learner.data.row_source import RowBlocks, RowSource, SourcePlace
from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.learner.data.source_counts import WaitedSource
from league.agents.learner.errors import FeederError, FeederFullError, FeederTimeoutError
from league.agents.replay.replay_source import ReplaySource, blocks_of
from league.agents.replay.row_bytes import RowLayout
from league.agents.unroll.codec import OpenChunk
from league.agents.unroll.unroll import UnrollSpec

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
"""Longest wait of one question for a batch, so that a source that was closed asks no more soon after."""
PAUSE_S = 0.2
"""Between two questions to a host that is lost, as long as its handle does not say so."""
HASH_BYTES = 8
"""Of a chunk's checksum, at its end, that choose its host."""


def replay(spec: UnrollSpec, config: LearnerConfig, place: SourcePlace[Any], options: ReplayConfig) -> RowSource[Any]:
    """The replay of `learner.row_source`: over the hosts of the place, or here; its part where it is one of several."""
    share = options.share(len(place.hosts) or place.parts)
    return RemoteReplay(spec, config, place, share) if place.hosts else ReplaySource(spec, config, place, share)


class RemoteReplay(WaitedSource):
    """Rows that hosts keep, which outlive this source; see `RowSource`.

    Args:
      spec: of the unrolls. config: of the learner. place: with the hosts. share: options of each host.
    """

    def __init__(
        self, spec: UnrollSpec, config: LearnerConfig, place: SourcePlace[OpenChunk], share: ReplayConfig
    ) -> None:
        super().__init__(place.changed, failed="the replay hosts cannot be asked")
        self._layout = RowLayout(spec)
        self._hosts = place.hosts
        self._batch_rows = config.batch_rows
        self._block_rows = config.batch_rows // config.microbatches
        self._capacity = min(share.capacity, config.batch_rows)
        self._come: deque[tuple[RemoteRows, RemoteBatch]] = deque()
        self._in_hand: RemoteBatch | None = None
        for number, host in enumerate(self._hosts):
            threading.Thread(target=self._fetch, args=(host,), name=f"rows-{number}", daemon=True).start()

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def rows_ready(self) -> int:
        """As in the protocol: all or none."""
        with self._changed:
            self._raise_if_over()
            return self._batch_rows if self._come else 0

    def push(self, chunk: OpenChunk, *, num_rows: int, timeout_s: float = 0.0) -> None:
        """As in the protocol; returns once a host has stored the rows.

        Raises:
          RowsLostError: the host was lost with the chunk on its way: it may be stored, and is not sent again.
        """
        del num_rows
        until = time.monotonic() + timeout_s
        with self._changed:
            self._raise_if_over()
            self._waiting += 1
        try:
            host = self._host_of(chunk.whole, timeout_s=timeout_s)
            counts = host.push(chunk.whole, timeout_s=max(until - time.monotonic(), 0.0))
        finally:
            with self._changed:
                self._waiting -= 1
        with self._changed:
            self._counts.add(replace(counts, waited_s=0.0, idle_fraction=0.0))  # its own waits are not the learner's

    @contextlib.contextmanager
    def batch(self, *, timeout_s: float) -> Iterator[RowBlocks]:
        with self._changed:
            with self._counts.waiting():
                self._changed.wait_for(lambda: self._is_over() or self._come, timeout=timeout_s)
            self._raise_if_over()
            if not self._come:
                raise FeederTimeoutError(f"no replay host has sampled a batch in {timeout_s:g} s")
            _, batch = self._come.popleft()
            self._changed.notify_all()
        self._in_hand = batch
        blocks = blocks_of(self._layout, batch.block, batch.weights, rows=self._block_rows)
        yield RowBlocks(blocks, fresh_steps=batch.fresh_steps)
        self._in_hand = None

    def learnt(self, row_errors: NDArray[np.float32] | None) -> None:
        """As in the protocol; errors of rows whose host was lost meanwhile go with it."""
        if row_errors is not None and self._in_hand is not None:
            self._in_hand.learnt(row_errors)

    def close(self) -> None:
        """As in the protocol; the hosts keep the rows."""
        with self._changed:
            self._closed = True
            self._come.clear()
            self._changed.notify_all()

    def _host_of(self, chunk: bytes, *, timeout_s: float) -> RemoteRows:
        """The host of a chunk, or the next after it that is there; if none is, it is waited for."""
        first = int.from_bytes(chunk[-HASH_BYTES:], "little") % len(self._hosts)
        in_order = (*self._hosts[first:], *self._hosts[:first])
        there = next((host for host in in_order if host.wait(0.0)), None)
        if there is not None:
            return there
        if not in_order[0].wait(timeout_s):
            raise FeederFullError(f"no replay host was there for {timeout_s:g} s")
        return in_order[0]

    def _fetch(self, host: RemoteRows) -> None:
        """The life of the thread that asks one host for batches, each as soon as the last was taken."""
        try:
            while self._wants(host):
                batch = self._next_of(host)
                if batch is not None:
                    with self._changed:
                        if not self._closed:
                            self._come.append((host, batch))
                        self._changed.notify_all()
        except Exception as error:  # the boundary of this thread: raised again in the learner's
            logger.exception("a replay host cannot be asked")
            self._fail(error)

    def _wants(self, host: RemoteRows) -> bool:
        """Wait until no batch of a host waits here; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over() or all(other is not host for other, _ in self._come))
            return not self._is_over()

    def _next_of(self, host: RemoteRows) -> RemoteBatch | None:
        try:
            return host.batch(timeout_s=LOOK_EVERY_S) if host.wait(LOOK_EVERY_S) else None
        except FeederError as error:
            is_lost = isinstance(error, RowsLostError)  # another takes its place
            with self._changed:
                if not self._closed and not is_lost:
                    logger.warning("a replay host gives no rows: %s", error)
                self._changed.wait_for(self._is_over, timeout=PAUSE_S if is_lost else LOOK_EVERY_S)
            return None
