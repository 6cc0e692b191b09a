"""The way of a learner host to the replay hosts, which are replaced when they are lost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray

from league.agents.learner.data.remote_rows import RemoteBatch, RowsLostError
from league.agents.learner.data.source_counts import SourceReport
from league.agents.replay.replay_table import Sample

ANSWER_S = 5.0
"""Time for an answer beyond the wait that it was asked to make."""

LOST = (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError, ray.exceptions.ObjectLostError)


class ReplayHandles:
    """The handles of the replay hosts in their order, None for one that is not there. Any thread may call."""

    def __init__(self, number: int) -> None:
        self._changed = threading.Condition()
        self._handles: list[Any] = [None] * number
        self._dead: list[Any] = []

    def use(self, handles: Sequence[Any]) -> None:
        """Take over the handles as the runtime knows them, but for those that were found dead here."""
        with self._changed:
            self._dead = [handle for handle in self._dead if handle in handles]
            self._handles = [None if handle in self._dead else handle for handle in handles]
            self._changed.notify_all()

    def wait(self, place: int, timeout_s: float) -> Any:
        """The handle of a host, waiting for it; None if it does not come."""
        with self._changed:
            self._changed.wait_for(lambda: self._handles[place] is not None, timeout=timeout_s)
            return self._handles[place]

    def lost(self, handle: Any) -> None:
        """A host is dead: it is not asked again."""
        with self._changed:
            self._dead.append(handle)
            self._handles = [None if other == handle else other for other in self._handles]

    def rows_of(self, player: str, generation: int) -> tuple[RayRows, ...]:
        """The rows of a player in every host."""
        return tuple(RayRows(self, place, player, generation) for place in range(len(self._handles)))


@dataclass(frozen=True)
class RayRows:
    """The rows of one player in one replay host; see `RemoteRows`. place: of the host."""

    handles: ReplayHandles
    place: int
    player: str
    generation: int

    def wait(self, timeout_s: float) -> bool:
        return self.handles.wait(self.place, timeout_s) is not None

    def push(self, chunk: bytes, *, timeout_s: float) -> SourceReport:
        handle = self._handle()
        pushed = handle.push.remote(self.player, self.generation, chunk, timeout_s=timeout_s)
        counts: SourceReport = self._answer(handle, pushed, timeout_s=timeout_s)
        return counts

    def batch(self, *, timeout_s: float) -> RemoteBatch | None:
        handle = self._handle()
        asked = handle.batch.remote(self.player, self.generation, timeout_s=timeout_s)
        sample: Sample | None = self._answer(handle, asked, timeout_s=timeout_s)
        if sample is None:
            return None
        bare = replace(sample, block=sample.block[:0], weights=None)

        def learnt(row_errors: NDArray[np.float32]) -> None:
            handle.update.remote(self.player, self.generation, bare, row_errors)

        return RemoteBatch(sample.block, sample.weights, sample.fresh_steps, learnt)

    def _handle(self) -> Any:
        handle = self.handles.wait(self.place, 0.0)
        if handle is None:
            raise RowsLostError("the replay host is not there")
        return handle

    def _answer(self, handle: Any, reference: Any, *, timeout_s: float) -> Any:
        try:
            return ray.get(reference, timeout=timeout_s + ANSWER_S)
        except LOST as error:
            if isinstance(error, ray.exceptions.ActorDiedError):
                self.handles.lost(handle)
            raise RowsLostError(f"the replay host did not answer: {type(error).__name__}") from error
