"""A journal that begins as another one's past, or goes back into its own: its chain holds from the first event on."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from league.store.journal import Journal
from league.store.journal_reader import JournalHead, JournalReader, damaged


class BranchJournal(Journal):
    """A journal whose past may be taken from elsewhere or cut off; after that it is written on like any other."""

    def take_over(self, source: JournalReader, *, to_seq: int) -> JournalHead:
        """Begin with the events of `source` up to `to_seq`, bit for bit, and the states stored by then.

        Returns: the last event, once the chain up to it was checked from the first.
        Raises:
          JournalError: they are not what was recorded, or end before `to_seq`.
          DiskFull, StorageError: nothing was stored.
        """
        assert self.head().seq == 0 and not self.num_pending, "only an empty journal can begin with another's events"
        with self._one_transaction():
            self._insert("events", source.rows("events", to_seq=to_seq))
            self._insert("states", source.rows("states", to_seq=to_seq))
        taken = self.verify()
        if taken.seq != to_seq:
            raise damaged(self._path, f"it ends at event {taken.seq} and not at event {to_seq}")
        self._seq, self._chain, self._durable_seq = taken.seq, bytes.fromhex(taken.chain), taken.seq
        self._segments_end = self._last_segment()
        self._write_mark(durable=True)
        return taken

    def take_back(self, events: Sequence[object], *, to_seq: int, wall_time: float) -> int:
        """Forget every event and stored state after `to_seq`, and append `events`: both durable, or neither.

        Returns: number of the last durable event.
        Raises:
          JournalError: an event cannot be recorded; nothing has changed.
          DiskFull, StorageError: nothing has changed.
        """
        assert not self.num_pending, "commit before a journal is taken back"
        before = self._seq, self._chain
        self._seq, self._chain = to_seq, self._chain_before(to_seq + 1)
        try:
            self.append(events, wall_time=wall_time)
            self._mark.write(to_seq, self.head_at(to_seq).chain, durable=True)  # it may be behind, never ahead
            split = self._segment_with(to_seq)
            is_cut = split is not None and split.rows[-1][0] > to_seq
            kept = [row for row in split.rows if row[0] <= to_seq] if split is not None and is_cut else []
            with self._one_transaction():
                for table in ("states", "events"):
                    self._connection.execute(f"DELETE FROM {table} WHERE seq > ?", (to_seq,))
                self._insert("events", [*kept, *self._queue])
        except BaseException:
            self._seq, self._chain = before
            raise
        finally:
            self._queue.clear()
        self._durable_seq = self._seq
        self._segments_end = self._last_segment()
        self._write_mark(durable=True)
        return self._durable_seq

    def _insert(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        rest = iter(rows)
        first = next(rest, None)
        if first is not None:
            places = ", ".join("?" * len(first))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", itertools.chain([first], rest))
