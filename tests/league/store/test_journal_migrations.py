"""Journals of every earlier version: read as they are, brought to the newest when written, whole after a crash."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from league.core.state.events import EVENTS, ProgressReported
from league.core.state.records import Progress
from league.errors import JournalError
from league.store.journal import Journal
from league.store.journal_migrations import FIRST_VERSION, JOURNAL_VERSION, MIGRATIONS
from league.store.journal_reader import JournalReader
from league.store.journaled_league import verified_state
from league.store.storage import Storage
from league.version import __version__
from tests.league.store.store_faults import DieAt, Died

GOLDEN = Path(__file__).parents[2] / "golden"
HEADS = {
    1: (14, "10f863d0733476baf39c0af5d98e41ec6a81877e118d96c693131c4d085bcaa6", 46),
    2: (25, "9e4605439213c79af878b9e54c91072d64c890b294777f8d16c97357aaaccfae", 97),
}
"""Version -> last event, chain and games of the journal of that version in tests/golden."""

older = pytest.mark.parametrize("version", sorted(HEADS))


@pytest.fixture
def journal(tmp_path: Path, version: int) -> Path:
    return Path(shutil.copy(GOLDEN / f"journal-v{version}.db", tmp_path / "journal.db"))


def version_in(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_there_is_a_journal_of_every_earlier_version_and_a_way_from_each_to_the_next() -> None:
    versions = range(FIRST_VERSION, JOURNAL_VERSION)
    assert set(HEADS) == set(MIGRATIONS) == set(versions)
    assert [version_in(GOLDEN / f"journal-v{version}.db") for version in versions] == list(versions)


@older
def test_an_older_journal_is_read_as_it_is(journal: Path, version: int) -> None:
    before = journal.read_bytes()
    with JournalReader.open_readonly(journal, events=EVENTS) as reader:
        state = verified_state(reader)
        assert (reader.head().seq, reader.head().chain, state.totals.games) == HEADS[version]
        assert reader.programs() == ()
    assert journal.read_bytes() == before


@older
def test_the_writer_brings_it_to_the_newest_version_and_no_event_changes(journal: Path, version: int) -> None:
    seq, chain, games = HEADS[version]
    for opened in range(2):
        with Journal.open(journal, events=EVENTS) as written:
            assert written.programs() == ((__version__, seq + 1),)
            if not opened:
                assert (written.head().seq, written.head().chain) == (seq, chain)
                written.append([ProgressReported(Progress("main-0", 9, 900))], wall_time=0.0)
                written.commit()
    assert version_in(journal) == JOURNAL_VERSION
    with JournalReader.open_readonly(journal, events=EVENTS) as reader:
        assert reader.head_at(seq).chain == chain and reader.head().seq == seq + 1
        assert verified_state(reader).totals.games == games


@older
def test_a_crash_in_between_leaves_the_older_journal_or_the_newest(journal: Path, version: int) -> None:
    deaths = 0
    while True:
        try:
            Journal.open(journal, events=EVENTS, storage=Storage(hook=DieAt(deaths))).close()
            break
        except Died:
            deaths += 1
        assert version_in(journal) in (version, JOURNAL_VERSION)
        with JournalReader.open_readonly(journal, events=EVENTS) as reader:
            assert reader.verify().chain == HEADS[version][1]
    assert deaths > 1 and version_in(journal) == JOURNAL_VERSION


@pytest.mark.parametrize(("newer", "sentence"), [(JOURNAL_VERSION + 1, ", written by league 9.9;"), (0, "version 0;")])
def test_a_version_that_is_not_known_is_refused_in_a_sentence_with_its_writer(
    tmp_path: Path, newer: int, sentence: str
) -> None:
    path = tmp_path / "journal.db"
    Journal.create(path, events=EVENTS).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        if newer:
            connection.execute("INSERT INTO programs VALUES ('9.9', 7)")
        else:
            connection.execute("DROP TABLE programs")
        connection.execute(f"PRAGMA user_version = {newer}")
        connection.commit()
    for open_it in (JournalReader.open_readonly, Journal.open):
        with pytest.raises(JournalError, match="use the program that wrote it") as refused:
            open_it(path, events=EVENTS)
        assert sentence in str(refused.value) and f"this is league {__version__}" in str(refused.value)
    assert version_in(path) == newer
