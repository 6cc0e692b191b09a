"""Gathers decisions into batches: computed once enough wait, or the oldest has waited for the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from league.deploy.serving.served_policy import Decided, Row, ServedPolicy


class Overloaded(Exception):  # noqa: N818
    """As many decisions wait as may."""


class Batcher:
    """Computes decisions in batches, on the thread of the event loop that it is used from.

    A forward pass of a small network takes less time than handing it to another thread. While one runs, requests
    wait in their sockets and make up the next batch.

    Args:
      policy: that decides. max_batch: most rows of a batch. deadline_s: longest wait of a row for others.
      max_waiting: rows that may wait; a further one is refused.
      callers: number of clients that could ask at present; once as many rows wait, nobody is worth waiting for.
      note: called with the size of every batch.
    """

    def __init__(
        self,
        policy: ServedPolicy,
        *,
        max_batch: int,
        deadline_s: float,
        max_waiting: int,
        callers: Callable[[], int],
        note: Callable[[int], object],
    ) -> None:
        self._policy = policy
        self._max_batch = max_batch
        self._deadline_s = deadline_s
        self._max_waiting = max_waiting
        self._callers = callers
        self._note = note
        self._waiting: list[tuple[Row, asyncio.Future[Decided]]] = []
        self._timer: asyncio.Handle | None = None

    @property
    def waiting(self) -> int:
        """Rows that wait."""
        return len(self._waiting)

    async def decide(self, row: Row) -> Decided:
        """The answer to a row.

        Raises:
          Overloaded: too many wait.
        """
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Decided] = loop.create_future()
        self._waiting.append((row, answer))
        if len(self._waiting) >= min(self._max_batch, max(self._callers(), 1)):
            self._rearm(loop, 0.0)
        elif self._timer is None:
            self._rearm(loop, self._deadline_s)
        return await answer

    def _rearm(self, loop: asyncio.AbstractEventLoop, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(delay_s, self._flush) if delay_s else loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._timer = None
        taken, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
        taken = [
            (row, answer) for row, answer in taken if not answer.done()
        ]  # a caller that left has cancelled its own
        if taken:
            self._note(len(taken))
            try:
                decided = self._policy.decide([row for row, _ in taken])
            except Exception as error:  # boundary: whatever a network of the user's own raises is each caller's error
                for _, answer in taken:
                    answer.set_exception(error)
            else:
                for (_, answer), one in zip(taken, decided, strict=True):
                    answer.set_result(one)
        if self._waiting:
            self._rearm(asyncio.get_running_loop(), 0.0)
