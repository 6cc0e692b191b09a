"""Events, journals and changes behind the back of a journal, for its tests."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from league.store.journal import Journal
from league.store.journal_reader import JournalReader
from league.store.storage import Storage


@dataclass(frozen=True)
class Seat:
    policy: str
    share: float


@dataclass(frozen=True)
class Counted:
    number: int
    seats: tuple[Seat, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Started:
    token: int


EVENTS: dict[str, type] = {"Counted": Counted, "Started": Started}


def create(folder: Path, **options: Storage) -> Journal:
    return Journal.create(folder / "journal.db", events=EVENTS, **options)


def counted(*numbers: int) -> list[Counted]:
    return [Counted(number) for number in numbers]


def numbers(journal: JournalReader, *, from_seq: int = 1) -> list[int]:
    return [event.number for _, event in journal.replay(from_seq=from_seq) if isinstance(event, Counted)]


def filled(folder: Path, count: int = 200) -> Path:
    """A closed journal of `count` events in groups of ten, all of it in the main file."""
    with create(folder) as journal:
        for first in range(0, count, 10):
            journal.append(counted(*range(first, first + 10)), wall_time=0.0)
            journal.commit()
        journal.save_state(b"state" * 100)
    return folder / "journal.db"


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()
