"""Damaged, foreign and incomplete journals: each is refused by name, and none is taken for a new one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from league.errors import JournalError
from league.store.journal import Journal
from league.store.journal_reader import JournalReader
from tests.league.store.journal_cases import EVENTS, Started, change, counted, create, filled


def test_a_missing_or_foreign_or_empty_file_is_never_taken_for_a_new_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="does not exist"):
        Journal.open(tmp_path / "journal.db", events=EVENTS)
    for content in (b"", b"SQLite format 3\0" + b"\0" * 2000, os.urandom(5000)):
        (tmp_path / "journal.db").write_bytes(content)
        with pytest.raises(JournalError, match="damaged"):
            Journal.open(tmp_path / "journal.db", events=EVENTS)
        with pytest.raises(JournalError, match="damaged"):
            JournalReader.open_readonly(tmp_path / "journal.db", events=EVENTS)


def test_damage_in_the_table_of_contents_has_a_name(tmp_path: Path) -> None:
    path = filled(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE states", b"CREAT\xbb TABLE states"))
    with pytest.raises(JournalError, match="damaged"):
        Journal.open(path, events=EVENTS)


def test_create_refuses_an_existing_file(tmp_path: Path) -> None:
    create(tmp_path).close()
    with pytest.raises(JournalError, match="already exists"):
        create(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    path = filled(tmp_path)
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))
    with pytest.raises(JournalError, match="damaged"), Journal.open(path, events=EVENTS) as journal:
        journal.verify()


def test_any_flipped_bit_of_an_event_is_found(tmp_path: Path) -> None:
    path = filled(tmp_path, count=20)
    content = path.read_bytes()
    body = content.index(b'{"number":7,')
    rng = np.random.default_rng(0)
    for offset in [body + 10, *rng.integers(body - 40, body + 40, size=30)]:
        spoilt = bytearray(content)
        spoilt[offset] ^= 1 << int(rng.integers(8))
        copy = tmp_path / "copy.db"
        copy.write_bytes(spoilt)
        with pytest.raises(JournalError), JournalReader.open_readonly(copy, events=EVENTS) as journal:
            before = [event for _, event in journal.replay()]
            journal.verify()
            assert before == counted(*range(20)) and spoilt[offset] != content[offset]
            raise JournalError("only the wall time or an unused byte was flipped")


def test_a_missing_exchanged_or_altered_event_is_named(tmp_path: Path) -> None:
    path = filled(tmp_path)
    for statement, named in (
        ("UPDATE events SET body = '{\"number\":1000}' WHERE seq = 17", "event 17 is not the one"),
        ("UPDATE events SET kind = 'Started' WHERE seq = 17", "event 17 is not the one"),
        ("DELETE FROM events WHERE seq = 17", "event 17 is missing"),
    ):
        copy = tmp_path / "copy.db"
        shutil.copy(path, copy)
        change(copy, statement)
        with JournalReader.open_readonly(copy, events=EVENTS) as journal, pytest.raises(JournalError, match=named):
            journal.verify()
        with JournalReader.open_readonly(copy, events=EVENTS) as journal, pytest.raises(JournalError, match=named):
            list(journal.replay())


def test_a_lost_write_ahead_log_is_loud_when_the_heartbeat_knew_more(tmp_path: Path) -> None:
    journal = create(tmp_path)
    journal.append(counted(1), wall_time=0.0)
    journal.commit()
    journal._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    journal.append(counted(2, 3), wall_time=0.0)
    journal.commit()
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(tmp_path / "journal.db", copy)  # without journal.db-wal
    journal.close()
    with pytest.raises(JournalError, match="ends at event 1 although event 3 was durable"):
        Journal.open(copy / "journal.db", events=EVENTS, at_least_seq=3)


def test_another_schema_version_names_the_way_out(tmp_path: Path) -> None:
    path = filled(tmp_path)
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(JournalError, match="is a journal of version 99, written by league"):
        Journal.open(path, events=EVENTS)


def test_an_unknown_kind_of_event_names_the_way_out(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with (
        JournalReader.open_readonly(path, events={"Started": Started}) as journal,
        pytest.raises(JournalError, match=r"event 1 .* kind 'Counted', which this version does not know"),
    ):
        list(journal.replay())


@pytest.mark.parametrize("column", ["payload", "digest", "chain"])
def test_a_spoilt_state_is_reported_and_the_one_before_it_is_read(tmp_path: Path, column: str) -> None:
    path = filled(tmp_path)
    with Journal.open(path, events=EVENTS) as writer:
        writer.append(counted(200), wall_time=0.0)
        writer.commit()
        writer.save_state(b"newer")
    for left in (200, None):
        change(
            path,
            f"UPDATE states SET {column} = x'00' WHERE seq = (SELECT max(seq) FROM states WHERE digest != x'00' "
            "AND payload != x'00' AND chain != x'00')",
        )
        with JournalReader.open_readonly(path, events=EVENTS) as journal:
            notes: list[str] = []
            stored = journal.load_state(note=notes.append)
            assert (None if stored is None else stored.seq) == left
            assert all("not the one that was written" in note for note in notes) and notes
    reader = JournalReader.open_readonly(path, events=EVENTS)
    with reader as journal, pytest.raises(JournalError, match="state stored after event 200"):
        journal.verify()
