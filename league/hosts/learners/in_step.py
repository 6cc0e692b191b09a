"""Has actor hosts wait for the update that their unrolls go into, as in A2C, so that none acts with older weights."""

from __future__ import annotations

import threading
import time


class InStep:
    """The actor hosts that play for one player, each with one chunk on its way at most.

    Args:
      changed: held while anything here is read or changed, and notified of it.
      batch_rows: rows of one update.
    """

    def __init__(self, changed: threading.Condition, *, batch_rows: int) -> None:
        self._changed = changed
        self._batch_rows = batch_rows
        self._pushed = self._learnt = 0  # rows since the start
        self._senders: set[str] = set()
        self._waiting: dict[str, int] = {}  # sender -> rows since the start, up to the end of its chunk
        self._closed = False

    def wait(self, num_rows: int, *, sender: str, until: float) -> None:
        """Wait until a chunk just pushed has been learnt from, or until every sender waits and no batch is whole.

        Args:
          num_rows: of the chunk. sender: name of the actor host.
          until: latest end, as of `time.monotonic`: a sender that was lost never leaves, and a chunk that was refused
            is never learnt from. Both are forgotten then.
        """
        with self._changed:
            self._pushed += num_rows
            end = self._pushed
            self._senders.add(sender)
            self._waiting[sender] = end
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._is_over(end), timeout=until - time.monotonic()):
                self._senders.clear()
                self._learnt = self._pushed
            self._waiting.pop(sender, None)

    def learnt(self) -> None:
        """An update was made, and its weights are published."""
        with self._changed:
            self._learnt += self._batch_rows
            self._changed.notify_all()

    def leave(self, sender: str) -> None:
        """Nobody waits for this actor host any more, until its next chunk."""
        with self._changed:
            self._senders.discard(sender)
            self._changed.notify_all()

    def close(self) -> None:
        """Answer all that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_over(self, end: int) -> bool:
        # One whose chunk was learnt from plays on, also where its thread has not woken yet.
        nobody_plays = all(self._waiting.get(sender, 0) > self._learnt for sender in self._senders)
        return self._closed or self._learnt >= end or (nobody_plays and self._pushed - self._learnt < self._batch_rows)
