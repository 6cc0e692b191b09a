"""The protocol of row sources, where the rows of a player wait for its learner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.config import DEFAULT_ROW_SOURCE, LearnerConfig
from league.agents.learner.data.batch import Ahead
from league.agents.learner.data.remote_rows import RemoteRows
from league.agents.learner.data.row_source_config import ROW_SOURCES
from league.agents.learner.data.source_counts import SourceReport
from league.agents.unroll.device_unrolls import AnyRows
from league.agents.unroll.unroll import UnrollSpec
from league.envs.component_choice import kind_of
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.row_source"

ChunkT = TypeVar("ChunkT")
ChunkT_contra = TypeVar("ChunkT_contra", contravariant=True)


@dataclass(frozen=True)
class RowBlocks:
    """One batch; an iterator of its blocks of equally many rows, each as soon as it is ready.

    Fields:
      blocks: views that are valid until the context of the batch ends.
      fresh_steps: valid decisions that no earlier batch held; None where every decision is one.
      ahead: gives the first block of the next batch, see `Learner.update_stream`; None where none is known before.
    """

    blocks: Iterator[AnyRows]
    fresh_steps: int | None = None
    ahead: Ahead | None = None

    def __iter__(self) -> Iterator[AnyRows]:
        return self

    def __next__(self) -> AnyRows:
        return next(self.blocks)


class RowSource(Protocol[ChunkT_contra]):
    """Holds the rows of one player until its learner takes them.

    `push` may be called from any thread; the other methods are the learner's. Built as
    `source(spec, config, place)`, with `options=...` where it declares options, see `league.envs.plugin_options`.
    """

    @property
    def capacity(self) -> int:
        """Most rows that one chunk may have."""
        ...

    @property
    def waiting(self) -> int:
        """Chunks that wait in `push` for room."""
        ...

    @property
    def rows_ready(self) -> int:
        """Rows of the next batch that are there; at least a whole batch where `batch` does not wait.

        Raises:
          FeederError: the source is closed or has failed.
        """
        ...

    def push(self, chunk: ChunkT_contra, *, num_rows: int, timeout_s: float = 0.0) -> None:
        """Hand over a chunk. Waits for room, which holds back whoever produces rows.

        Args:
          timeout_s: deadline for room.
        Raises:
          FeederFullError: there is no room within the deadline.
          FeederError: the source is closed or has failed.
        """
        ...

    def batch(self, *, timeout_s: float) -> AbstractContextManager[RowBlocks]:
        """The next `config.batch_rows` rows, as `config.microbatches` blocks, or as one where no thread may decode.

        Args:
          timeout_s: deadline for each block.
        Raises:
          FeederTimeoutError: from the iterator, a block did not come in time; the next call starts with the same rows.
            After any other error they do not come again, so that a batch that cannot be learnt from ends.
        """
        ...

    def learnt(self, row_errors: NDArray[np.float32] | None) -> None:
        """The errors of the rows of the batch handed out last, float32 [B] and at least 0; None where there are none.

        Called inside the context of that batch.
        """
        ...

    def report(self) -> SourceReport:
        """Counts since the last call."""
        ...

    def close(self) -> None:
        """End threads and wake all that wait; may be called twice."""
        ...


@dataclass(frozen=True)
class SourcePlace(Generic[ChunkT]):
    """The surroundings of a source: threads, folder, seed and decoder.

    Fields:
      decode: a chunk to unrolls, in whichever thread. A ValueError refuses a bad chunk.
      chunk_rows: most rows of one chunk in the run.
      threads: that may decode; 0 where rows are taken in by the caller's thread, one chunk after the other, so that
        equal calls have equal results. A batch is one block then.
      changed: notified of every event, for callers that wait for several sources at once.
      pinned: see `UnrollRing`.
      seed: of random choices.
      folder: for files of this player's rows, of this machine; None where there is none.
      generation: of the player's weights; rows of another one are those of its past self.
      hosts: that keep the rows for a learner elsewhere; empty where they are kept here.
      parts: hosts among which the rows are spread, this being one of them.
    """

    decode: Callable[[ChunkT], AnyRows]
    chunk_rows: int = 1
    threads: int = 1
    changed: threading.Condition = field(default_factory=threading.Condition)
    pinned: bool = False
    seed: int = 0
    folder: Path | None = None
    generation: int = 0
    hosts: tuple[RemoteRows, ...] = ()
    parts: int = 1


def make_row_source(spec: UnrollSpec, config: LearnerConfig, place: SourcePlace[Any]) -> RowSource[Any]:
    """Make the source of `config.row_source`, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: there is no such source, or its options do not fit.
    """
    build = resolve(kind_of(config.row_source, DEFAULT_ROW_SOURCE), ROW_SOURCES, what=PLACE)
    source: RowSource[Any] = build(spec, config, place, **options_argument(build, config.row_source, place=PLACE))
    return source
