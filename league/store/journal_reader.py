"""Reads a run's journal, also while the daemon writes to it, and verifies it against its hash chain.

The journal is a sqlite file in which every event is chained to the one before: the chain value after event n is
sha256(chain after n-1, kind, 0x00, body). Two journals with the same chain hold the same events, regardless of the
clock that labelled them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from league.errors import DiskFull, JournalError, StorageError
from league.store.event_codec import EventCodec
from league.store.journal_mark import JournalMark, mark_path, mark_problem, read_mark
from league.store.journal_migrations import check_version, programs_of
from league.store.journal_segments import SEGMENT, Row, Segment, next_chain, unpack_segment
from league.store.storage import NO_SPACE

APPLICATION_ID = 0x4C454147
"""Marks the file as ours ("LEAG"), so that an emptied file is not taken for a young journal."""

GENESIS = hashlib.sha256(b"league journal 1").digest()
"""Chain value before the first event."""

BUSY_TIMEOUT_S = 10.0
MAX_SEQ = (1 << 63) - 1

_TROUBLE_OUTSIDE_THE_FILE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)


@dataclass(frozen=True)
class JournalHead:
    """The last durable event: its number (0 before the first) and the chain value after it, in hex."""

    seq: int
    chain: str


@dataclass(frozen=True)
class StoredState:
    """A state written beside the events so that a restart need not replay them all.

    seq: the last event folded into it; payload: its encoding, the caller's own.
    """

    seq: int
    payload: bytes


class JournalReader:
    """Reads a journal, also while the daemon writes to it. Close it, or use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, events: Mapping[str, type]) -> None:
        self._connection = connection
        self._path = path
        self._codec = EventCodec(events)

    @classmethod
    def open_readonly(cls, path: Path, *, events: Mapping[str, type]) -> Self:
        """Open for reading alone.

        Raises:
          JournalError: missing, damaged, or of another version.
        """
        return cls(connect(path, mode="ro"), path, events=events)

    def programs(self) -> tuple[tuple[str, int], ...]:
        """(version, first event) of each program that has written the journal; empty where it is not known."""
        with named_sqlite_errors(self._path):
            return programs_of(self._connection)

    def head(self) -> JournalHead:
        """The last durable event."""
        with named_sqlite_errors(self._path):
            row = self._connection.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1").fetchone()
        return (
            JournalHead(seq=0, chain=GENESIS.hex())
            if row is None
            else JournalHead(seq=row[0], chain=self._blob(row[1], row[0]).hex())
        )

    def head_at(self, seq: int) -> JournalHead:
        """The event of that number as if it were the last.

        Raises:
          JournalError: there is none.
        """
        return JournalHead(seq=seq, chain=self._chain_before(seq + 1).hex())

    @contextlib.contextmanager
    def one_moment(self) -> Iterator[None]:
        """A context in which every read sees the same moment, even while a writer is active."""
        with named_sqlite_errors(self._path):
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):  # it only reads: there is nothing to lose
                self._connection.execute("ROLLBACK")

    def rows(self, table: Literal["events", "states"], *, to_seq: int) -> Iterator[tuple[object, ...]]:
        """The rows of a table up to an event just as they are stored, unchecked."""
        last = 0
        with named_sqlite_errors(self._path):
            for row in self._connection.execute(f"SELECT * FROM {table} WHERE seq <= ? ORDER BY seq", (to_seq,)):
                last = row[0]
                yield row
        if table == "events" and last < to_seq:
            yield from self.part_of_segment(last + 1, to_seq)

    def part_of_segment(self, from_seq: int, to_seq: int) -> list[Row]:
        """The events from one to another as single rows, where both lie in one segment; empty where they do not."""
        segment = self._segment_with(from_seq)
        return [] if segment is None else [row for row in segment.rows if from_seq <= row[0] <= to_seq]

    def entries(self, from_seq: int, to_seq: int) -> list[Row]:
        """The events from one number to another as single rows, with their wall times, unchecked."""
        found: list[Row] = []
        with named_sqlite_errors(self._path):
            stored = self._connection.execute(
                "SELECT * FROM events WHERE seq >= ? AND seq <= ? ORDER BY seq", (from_seq, to_seq)
            ).fetchall()
        for row in stored:
            inside = self._unpacked(row[0], row[2], row[3]).rows if row[1] == SEGMENT else (row,)
            found += [single for single in inside if single[0] >= from_seq]
        last = found[-1][0] if found else from_seq - 1
        return found if last >= to_seq else [*found, *self.part_of_segment(last + 1, to_seq)]

    def replay(self, *, from_seq: int = 1, to_seq: int | None = None) -> Iterator[tuple[int, object]]:
        """The events from `from_seq` to `to_seq` (by default the last) with their numbers, checked against the chain.

        Raises:
          JournalError: a number is missing, or an event is not the one that was recorded.
        """
        for seq, kind, body in self._checked_rows(from_seq, to_seq):
            yield seq, self._codec.decode(kind, body, seq=seq)

    def verify(self) -> JournalHead:
        """Check the whole file: sqlite's own integrity, every number, the chain, the mark, every stored state.

        Raises:
          JournalError: names what does not hold.
        """
        mark, _ = read_mark(self._path)  # first: a live daemon may move it on
        with named_sqlite_errors(self._path):
            found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise damaged(self._path, found)
        for _ in self._checked_rows(1, None):
            pass
        self._check_mark(mark)
        with named_sqlite_errors(self._path):
            states = self._connection.execute("SELECT seq, chain, payload, digest FROM states").fetchall()
        for seq, chain, payload, digest in states:
            if not self._state_holds(seq, chain, payload, digest):
                raise damaged(self._path, f"the state stored after event {seq} is not the one that was written")
        return self.head()

    def copy_to(self, path: Path) -> None:
        """Copy the journal as it is at this moment to a new file, while a writer is active too.

        Raises:
          JournalError: this file is damaged. DiskFull, StorageError: the copy is not whole.
        """
        with named_sqlite_errors(path), contextlib.closing(sqlite3.connect(path)) as copy:
            self._connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        with path.open("rb") as file:
            os.fsync(file.fileno())

    def mark_problem(self) -> str:
        """Describes a fault of the mark file in one sentence; empty if there is none."""
        mark, damaged_slots = read_mark(self._path)
        return mark_problem(mark, damaged_slots, path=mark_path(self._path), num_events=self.head().seq)

    def noted_files(self) -> dict[str, str]:
        """Name -> sha256 (hex) of the files that an orderly stop left at the last event; empty after any other end."""
        mark, _ = read_mark(self._path)
        return dict(mark.files) if mark is not None and mark.seq == self.head().seq else {}

    def load_state(self, *, note: Callable[[str], None] = lambda sentence: None) -> StoredState | None:
        """The newest stored state that holds; None where there is none and the caller folds from the first event.

        Args:
          note: given a sentence for each newer one that is not what was written: the events say the same as it did.
        """
        try:
            with named_sqlite_errors(self._path):
                numbers = self._connection.execute("SELECT seq FROM states ORDER BY seq DESC").fetchall()
            for (seq,) in numbers:
                with named_sqlite_errors(self._path):
                    row = self._connection.execute(
                        "SELECT chain, payload, digest FROM states WHERE seq = ?", (seq,)
                    ).fetchone()
                if row is not None and self._state_holds(seq, *row):
                    return StoredState(seq=seq, payload=bytes(row[1]))
                note(
                    f"The state stored after event {seq} is not the one that was written: the events are read instead."
                )
        except JournalError as error:
            note(f"The stored states cannot be read, so all events are read instead: {error}")
        return None

    def _check_mark(self, mark: JournalMark | None, *, at_least_seq: int = 0) -> None:
        """Compare the journal with its mark, and with the number of an event that is known to be durable."""
        head = self.head()
        known = max(at_least_seq, 0 if mark is None else mark.seq)
        if head.seq < known:
            raise damaged(self._path, f"it ends at event {head.seq} although event {known} was durable")
        if mark is not None and self.head_at(mark.seq).chain != mark.chain:
            raise damaged(self._path, f"event {mark.seq} is not the one that {mark_path(self._path).name} names")

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _chain_before(self, seq: int) -> bytes:
        if seq <= 1:
            return GENESIS
        with named_sqlite_errors(self._path):
            row = self._connection.execute("SELECT chain FROM events WHERE seq = ?", (seq - 1,)).fetchone()
        if row is not None:
            return self._blob(row[0], seq - 1)
        for number, _, _, chain, _ in self.part_of_segment(seq - 1, seq - 1):
            if number == seq - 1:
                return chain
        raise damaged(self._path, f"event {seq - 1} is missing")

    def _segment_with(self, seq: int) -> Segment | None:
        """The segment in which an event lies; None where it lies in none.

        Raises:
          JournalError: the segment is not the one that was written.
        """
        with named_sqlite_errors(self._path):
            row = self._connection.execute(
                "SELECT seq, kind, body, chain FROM events WHERE seq >= ? ORDER BY seq LIMIT 1", (seq,)
            ).fetchone()
        if row is None or row[1] != SEGMENT:
            return None
        return self._unpacked(row[0], row[2], row[3])

    def _unpacked(self, seq: int, body: object, chain: object) -> Segment:
        segment = unpack_segment(seq, body, chain)
        if segment is None:
            raise damaged(self._path, f"the events up to {seq}, stored together, are not the ones that were recorded")
        return segment

    def _checked_rows(self, from_seq: int, to_seq: int | None) -> Iterator[tuple[int, str, bytes]]:
        expected, chain = from_seq, self._chain_before(from_seq)
        for seq, kind, body, stored_chain in self._single_rows(from_seq, to_seq):
            if seq != expected:
                raise damaged(self._path, f"event {expected} is missing")
            chain = next_chain(chain, kind, self._blob(body, seq))
            if chain != stored_chain:
                raise damaged(self._path, f"event {seq} is not the one that was recorded")
            yield seq, kind, body
            expected += 1

    def _single_rows(self, from_seq: int, to_seq: int | None) -> Iterator[tuple[int, str, bytes, bytes]]:
        """Number, kind, body and chain of every event, those in segments too; only the latter are checked."""
        last = from_seq - 1
        with named_sqlite_errors(self._path):
            rows = self._connection.execute(
                "SELECT seq, kind, body, chain FROM events WHERE seq >= ? AND seq <= ? ORDER BY seq",
                (from_seq, MAX_SEQ if to_seq is None else to_seq),
            )
            for seq, kind, body, chain in rows:
                if kind == SEGMENT:
                    inside = self._unpacked(seq, body, chain).rows
                    yield from (row[:4] for row in inside if row[0] >= from_seq)
                else:
                    yield seq, kind, body, chain
                last = seq
        if to_seq is not None and last < to_seq:
            yield from (row[:4] for row in self.part_of_segment(last + 1, to_seq))

    def _blob(self, value: object, seq: int) -> bytes:
        """A column that must hold bytes: a damaged page may hold anything."""
        if not isinstance(value, bytes):
            raise damaged(self._path, f"event {seq} is not the one that was recorded")
        return value

    def _state_holds(self, seq: int, chain: object, payload: object, digest: object) -> bool:
        if not isinstance(payload, bytes):
            return False
        return hashlib.sha256(payload).digest() == digest and self._chain_before(seq + 1) == chain


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """Open the file; for reading also on a file system where nothing can be written.

    Raises:
      JournalError, StorageError.
    """
    if not path.is_file():
        raise JournalError(
            f"{path} does not exist: the run has no journal. Restore it from a copy, or start a new run."
        )
    try:
        return _connect(path, f"mode={mode}")
    except StorageError as error:
        if mode != "ro" or not isinstance(error.__cause__, sqlite3.OperationalError):
            raise
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise StorageError(
                f"{path} cannot be read where nothing may be written: its -wal file holds events of a run that was "
                "killed. Copy the run folder to where it may be written, and read it there."
            ) from error
    return _connect(path, f"mode={mode}&immutable=1")  # a read-only file system: neither lock nor log is needed


def _connect(path: Path, parameters: str) -> sqlite3.Connection:
    with named_sqlite_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{parameters}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_TIMEOUT_S,
            check_same_thread=False,
        )
        try:
            _check_schema(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise damaged(path, "it is not a journal of a run")
    check_version(connection, path)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def damaged(path: Path, reason: str) -> JournalError:
    return JournalError(
        f"{path} is damaged: {reason}. Restore it (with its -wal file) from a copy, or start a new run; "
        "nothing was changed."
    )


@contextlib.contextmanager
def named_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn sqlite's errors into ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # absent where text is not UTF-8
        if code == sqlite3.SQLITE_FULL:
            raise DiskFull(path) from error
        if code & 0xFF in _TROUBLE_OUTSIDE_THE_FILE:
            raise StorageError(f"{path}: {error}. Nothing of this step was stored.") from error
        raise damaged(path, str(error)) from error
    except UnicodeDecodeError as error:  # sqlite quotes damaged bytes in its message, which Python then cannot decode
        raise damaged(path, "its table of contents holds bytes that are no text") from error
    except OSError as error:
        if error.errno in NO_SPACE:
            raise DiskFull(path) from error
        raise StorageError(f"{path}: {error.strerror or error}. Nothing of this step was stored.") from error
