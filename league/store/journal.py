"""The one writer of what happened: an append-only sqlite log, durable in groups.

The daemon appends events, commits them in one transaction, and only then acts on them. `journal_reader` has the format.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from league.errors import JournalError
from league.store.journal_mark import MarkFile, mark_path, mark_problem
from league.store.journal_migrations import FIRST_VERSION, is_settled, settle
from league.store.journal_reader import (
    APPLICATION_ID,
    JournalReader,
    connect,
    named_sqlite_errors,
)
from league.store.journal_segments import PLAIN_EVENTS, SEGMENT, SEGMENT_EVENTS, next_chain, pack_segment
from league.store.storage import Storage, temporary_path

KEPT_STATES = 2

SYNC_MARK_EVERY_S = 1.0
"""A mark reaches the disk itself so often; between two of these it survives the end of the process, not a power cut."""

CACHE_KIB = 128
"""Pages that sqlite keeps in memory. It only appends here; by default it would fill 2 MiB with what it has written."""

_SCHEMA = f"""
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL, chain BLOB NOT NULL, wall_time REAL NOT NULL
);
CREATE TABLE states (seq INTEGER PRIMARY KEY, chain BLOB NOT NULL, payload BLOB NOT NULL, digest BLOB NOT NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FIRST_VERSION};
"""


class Journal(JournalReader):
    """The one writer of a journal. The caller holds the lock of the run folder; all calls come from one thread.

    Fields:
      notes: sentences for the user about what was found when it was opened.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, events: Mapping[str, type], storage: Storage | None = None
    ) -> None:
        super().__init__(connection, path, events=events)
        self._storage = storage or Storage()
        self._queue: list[tuple[int, str, bytes, bytes, float]] = []
        durable = self.head()
        self._seq, self._chain = durable.seq, bytes.fromhex(durable.chain)
        self._durable_seq = durable.seq
        self._mark = MarkFile(path, storage=self._storage)
        self._segments_end = self._last_segment()
        self._mark_synced_at = -SYNC_MARK_EVERY_S
        self.notes: list[str] = []

    @classmethod
    def create(cls, path: Path, *, events: Mapping[str, type], storage: Storage | None = None) -> Journal:
        """A new, empty journal. It has its name only once it is whole.

        Raises:
          JournalError: there is a file already.
          DiskFull, StorageError: it could not be written.
        """
        if path.exists():
            raise JournalError(f"{path} already exists: open it, or start the run in another folder.")
        temporary = temporary_path(path)
        for suffix in ("", "-wal", "-shm"):
            temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
        with named_sqlite_errors(path), contextlib.closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            settle(connection, next_seq=1)
            connection.commit()
        storage = storage or Storage()
        storage.remove(mark_path(path))  # of a journal that is gone: this one has not lost its events
        storage.publish_file(temporary, path)
        return cls.open(path, events=events, storage=storage)

    @classmethod
    def open(
        cls, path: Path, *, events: Mapping[str, type], storage: Storage | None = None, at_least_seq: int = 0
    ) -> Journal:
        """Open an existing journal for writing.

        Args:
          at_least_seq: number of an event known to be durable (from the last heartbeat), beside the journal's own mark.
            sqlite drops the rest of a write-ahead log from its first bad page on without a word; these make it loud.
        Raises:
          JournalError: missing, damaged, of another version, shorter than it was, or not the one of its mark.
        """
        connection = connect(path, mode="rw")
        with named_sqlite_errors(path):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        journal = cls(connection, path, events=events, storage=storage)
        try:
            journal._check_end(at_least_seq)
            journal._settle()
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def num_pending(self) -> int:
        """Events appended and not yet durable."""
        return len(self._queue)

    def append(self, events: Sequence[object], *, wall_time: float) -> range:
        """Queue events; nothing is durable before `commit`.

        Args:
          wall_time: seconds since 1970, a label outside the chain.
        Returns: their numbers.
        Raises:
          JournalError: one of them cannot be recorded; then none is queued.
        """
        first = self._seq + 1
        rows = []
        chain = self._chain
        for seq, event in enumerate(events, start=first):
            kind, body = self._codec.encode(event)
            chain = next_chain(chain, kind, body)
            rows.append((seq, kind, body, chain, wall_time))
        self._queue.extend(rows)
        self._seq, self._chain = first + len(rows) - 1, chain
        return range(first, self._seq + 1)

    def withdraw(self, first: int) -> None:
        """Take events back that are queued and not durable, from number `first` on."""
        assert first > self._durable_seq, f"event {first} is durable"
        del self._queue[first - self._durable_seq - 1 :]
        self._seq = first - 1
        self._chain = self._queue[-1][3] if self._queue else bytes.fromhex(self.head().chain)

    def commit(self) -> int:
        """Make everything queued durable in one transaction; returns the number of the last durable event.

        Raises:
          DiskFull, StorageError: nothing of the queue was stored, all of it is kept: commit again when there is room.
        """
        if self._queue:
            self._transact("INSERT INTO events VALUES (?, ?, ?, ?, ?)", self._queue)
            self._durable_seq, wall_time = self._queue[-1][0], self._queue[-1][4]
            self._queue.clear()
            durable = abs(wall_time - self._mark_synced_at) >= SYNC_MARK_EVERY_S
            self._write_mark(durable=durable)
            if durable:
                self._mark_synced_at = wall_time
        return self._durable_seq

    def close(self) -> None:
        """Close the file so that it is the whole journal, which any copy can be read from; may be called twice."""
        with contextlib.suppress(sqlite3.Error):  # a reader is active: the write-ahead log stays for the next opener
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        super().close()

    def compact(self) -> bool:
        """Put the oldest events that are single rows together as a segment; returns whether there were enough of them.

        Raises:
          JournalError: they are not what was recorded; nothing has changed.
          DiskFull, StorageError: nothing has changed.
        """
        first, last = self._segments_end + 1, self._segments_end + SEGMENT_EVENTS
        if last > self._durable_seq - PLAIN_EVENTS:
            return False
        for _ in self._checked_rows(first, last):  # what is damaged stays as it is, for a copy to mend
            pass
        with named_sqlite_errors(self._path):
            rows = self._connection.execute(
                "SELECT * FROM events WHERE seq >= ? AND seq <= ? ORDER BY seq", (first, last)
            ).fetchall()
        segment = pack_segment(rows, chain_before=self._chain_before(first))
        with self._one_transaction():
            self._connection.execute("DELETE FROM events WHERE seq >= ? AND seq <= ?", (first, last))
            self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", segment)
        self._segments_end = last
        return True

    def _settle(self) -> None:
        """Bring an older file to the newest version, as one transaction, and note this program as a writer."""
        with named_sqlite_errors(self._path):
            is_settled_already = is_settled(self._connection)
        if not is_settled_already:
            with self._one_transaction():
                settle(self._connection, next_seq=self._seq + 1)

    def _last_segment(self) -> int:
        """Number of the last event of the last segment; 0 without one."""
        with named_sqlite_errors(self._path):
            row = self._connection.execute(
                "SELECT seq FROM events WHERE kind = ? ORDER BY seq DESC LIMIT 1", (SEGMENT,)
            ).fetchone()
        return 0 if row is None else int(row[0])

    def note_files(self, files: Mapping[str, str]) -> None:
        """Note the sha256 (hex) of files beside the journal by their names; the next event takes the note away.

        Raises:
          DiskFull, StorageError: they need not be noted.
        """
        assert not self._queue, "commit before files are noted: they belong to the last durable event"
        self._mark.write(self._seq, self._chain.hex(), durable=True, files=files)

    def _write_mark(self, *, durable: bool) -> None:
        """Note that every event so far is durable."""
        self._mark.write(self._seq, self._chain.hex(), durable=durable)

    def _check_end(self, at_least_seq: int) -> None:
        """Check the last event, and that the journal goes as far as it is known to have gone."""
        head = self.head()
        mark, damaged_slots = self._mark.read()
        self._check_mark(mark, at_least_seq=at_least_seq)
        for _ in self._checked_rows(max(head.seq, 1), None):
            pass
        problem = mark_problem(mark, damaged_slots, path=self._mark.path, num_events=head.seq)
        if problem:
            self.notes.append(f"{problem} It is rewritten.")
            if mark is None:
                self._storage.remove(self._mark.path)
            self._write_mark(durable=True)

    def forget_states(self, *, after_seq: int) -> None:
        """Forget the states stored after an event, which do not hold.

        Raises:
          DiskFull, StorageError: they are still there.
        """
        self._transact("DELETE FROM states WHERE seq > ?", [(after_seq,)])

    def save_state(self, payload: bytes) -> None:
        """Store the state that folds every event up to the last durable one, and forget all but the newest two.

        Raises:
          DiskFull, StorageError: it was not stored; the events are untouched.
        """
        assert not self._queue, "commit before save_state: the stored state must not be ahead of the events"
        row = (self._seq, self._chain, payload, hashlib.sha256(payload).digest())
        with self._one_transaction():
            self._connection.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)", row)
            self._connection.execute(
                "DELETE FROM states WHERE seq NOT IN (SELECT seq FROM states ORDER BY seq DESC LIMIT ?)", (KEPT_STATES,)
            )

    def _transact(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with named_sqlite_errors(self._path):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(statement, rows)
                self._storage.fault("journal.before_commit")
                self._connection.execute("COMMIT")
            except (sqlite3.Error, OSError):
                with contextlib.suppress(sqlite3.Error):  # a full disk has already rolled back
                    self._connection.execute("ROLLBACK")
                raise
            self._storage.fault("journal.after_commit")

    @contextlib.contextmanager
    def _one_transaction(self) -> Iterator[None]:
        with named_sqlite_errors(self._path):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._storage.fault("journal.before_commit")
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # a full disk has already rolled back
                    self._connection.execute("ROLLBACK")
                raise
            self._storage.fault("journal.after_commit")
