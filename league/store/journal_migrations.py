"""Versions of the journal's file: each older one becomes the next by a small function, a newer one is refused.

A migration never changes an event or the chain. A reader takes older versions as they are; the writer brings the file
to the newest when it opens it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from league.errors import JournalError
from league.version import __version__

FIRST_VERSION, JOURNAL_VERSION = 1, 3


def allow_segments(connection: sqlite3.Connection) -> None:
    """From 1 to 2: rows may be segments, which a program of version 1 would take for missing events."""


def add_programs(connection: sqlite3.Connection) -> None:
    """From 2 to 3: a table of the programs that have written the journal."""
    connection.execute("CREATE TABLE programs (version TEXT PRIMARY KEY, first_seq INTEGER NOT NULL)")


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: allow_segments, 2: add_programs}
"""Version -> what makes it the next one. The caller holds a transaction."""


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a journal's file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a version that this program does not know.

    Raises:
      JournalError: it is newer; says which program wrote it.
    """
    version = version_of(connection)
    if FIRST_VERSION <= version <= JOURNAL_VERSION:
        return
    programs: tuple[tuple[str, int], ...] = ()
    with contextlib.suppress(sqlite3.Error):  # the table of a later version may be another
        programs = _programs(connection)
    writer = f", written by league {programs[-1][0]}" if programs else ""
    raise JournalError(
        f"{path} is a journal of version {version}{writer}; this is league {__version__}, which reads versions up to "
        f"{JOURNAL_VERSION}: use the program that wrote it, or a newer one."
    )


def is_settled(connection: sqlite3.Connection) -> bool:
    """True if the file is of the newest version and this program is among its writers."""
    if version_of(connection) != JOURNAL_VERSION:
        return False
    return any(version == __version__ for version, _ in _programs(connection))


def settle(connection: sqlite3.Connection, *, next_seq: int) -> None:
    """Bring the file to the newest version, and note this program as a writer. The caller holds a transaction."""
    for version in range(version_of(connection), JOURNAL_VERSION):
        MIGRATIONS[version](connection)
    connection.execute(f"PRAGMA user_version = {JOURNAL_VERSION}")
    connection.execute("INSERT OR IGNORE INTO programs VALUES (?, ?)", (__version__, next_seq))


def programs_of(connection: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    """(version, first event) of each program that has written the journal, in order; empty where it is not known."""
    return _programs(connection) if version_of(connection) >= JOURNAL_VERSION else ()


def _programs(connection: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    return tuple(connection.execute("SELECT version, first_seq FROM programs ORDER BY rowid").fetchall())
