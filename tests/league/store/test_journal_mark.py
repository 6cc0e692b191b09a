"""The mark beside a journal tells when the journal has lost its end, and is never ahead of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from league.errors import JournalError
from league.store.journal import Journal
from league.store.journal_mark import SLOT_BYTES, MarkFile, mark_path, read_mark
from league.store.journal_reader import JournalReader
from league.store.storage import Storage
from tests.league.store.store_faults import DieAt, Died
from tests.league.store.test_journal import EVENTS, counted, create, filled, numbers


def two_commits(folder: Path) -> Path:
    """What a killed writer leaves: one event in the main file, the other forty in the write-ahead log."""
    folder.mkdir()
    journal = create(folder)
    journal.append(counted(0), wall_time=0.0)
    journal.commit()
    journal._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(1, 41):
        journal.append(counted(number), wall_time=0.0)
        journal.commit()
    killed = folder / "killed"
    killed.mkdir()
    for path in folder.glob("journal.*"):
        shutil.copy(path, killed)
    journal.close()
    return killed / "journal.db"


def is_refused(path: Path) -> bool:
    """Whether both who read all of a journal and who goes on with it refuse it."""
    try:
        with JournalReader.open_readonly(path, events=EVENTS) as journal:
            journal.verify()
        read = False
    except JournalError:
        read = True
    try:
        Journal.open(path, events=EVENTS).close()
        written = False
    except JournalError:
        written = True
    assert read == written, f"verify refuses: {read}, opening refuses: {written}"
    return read


def test_a_deleted_or_truncated_write_ahead_log_is_refused(tmp_path: Path) -> None:
    whole = two_commits(tmp_path / "whole")
    size = whole.with_name("journal.db-wal").stat().st_size
    for number, kept in enumerate([None, 0, 32, size // 3, size // 2, size - 5_000, size - 1]):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(whole.parent, copy)
        wal = copy / "journal.db-wal"
        if kept is None:
            wal.unlink()
        else:
            with wal.open("r+b") as file:
                file.truncate(kept)
        assert is_refused(copy / "journal.db"), f"{kept} of {size} bytes"


def test_a_flipped_bit_of_the_write_ahead_log_never_loses_an_event_unseen(tmp_path: Path) -> None:
    whole = two_commits(tmp_path / "whole")
    content = whole.with_name("journal.db-wal").read_bytes()
    rng = np.random.default_rng(0)
    lost = 0
    for number in range(150):
        copy = tmp_path / "copy"
        shutil.copytree(whole.parent, copy)
        spoilt = bytearray(content)
        spoilt[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        (copy / "journal.db-wal").write_bytes(spoilt)
        if is_refused(copy / "journal.db"):
            lost += 1
        else:
            with Journal.open(copy / "journal.db", events=EVENTS) as journal:
                assert numbers(journal) == list(range(41)), f"flip {number} lost events unseen"
        shutil.rmtree(copy)
    assert lost > 100


def test_a_deleted_last_event_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with JournalReader.open_readonly(path, events=EVENTS) as journal:
        assert journal.head().seq == 200
    with Journal.open(path, events=EVENTS) as writer:
        writer._connection.execute("DELETE FROM events WHERE seq > 198")
        writer._connection.execute("DELETE FROM states")
    with pytest.raises(JournalError, match="ends at event 198 although event 200 was durable"):
        Journal.open(path, events=EVENTS)


def test_a_mark_behind_its_journal_is_no_error(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(counted(1), wall_time=0.0)
        journal.commit()
    dying = Journal.open(tmp_path / "journal.db", events=EVENTS, storage=Storage(hook=DieAt(2)))
    dying.append(counted(2, 3), wall_time=0.0)
    with pytest.raises(Died):
        dying.commit()
    dying.close()
    mark, damaged_slots = read_mark(tmp_path / "journal.db")
    assert mark is not None and (mark.seq, damaged_slots) == (1, 0)
    with Journal.open(tmp_path / "journal.db", events=EVENTS) as journal:
        journal.verify()
        assert numbers(journal) == [1, 2, 3]
        assert journal.notes == []


def test_one_damaged_slot_leaves_the_other_and_both_are_reported(tmp_path: Path) -> None:
    path = filled(tmp_path)
    content = mark_path(path).read_bytes()
    assert len(content) == 2 * SLOT_BYTES
    newest, _ = read_mark(path)
    assert newest is not None
    for slot in (0, 1):
        spoilt = bytearray(content)
        spoilt[slot * SLOT_BYTES + 20] ^= 1
        mark_path(path).write_bytes(spoilt)
        mark, damaged_slots = read_mark(path)
        assert mark is not None and mark.count >= newest.count - 1 and damaged_slots == 1
        with JournalReader.open_readonly(path, events=EVENTS) as journal:
            assert "one of its two marks" in journal.mark_problem()
    with Journal.open(path, events=EVENTS) as writer:
        assert "rewritten" in writer.notes[0]
        assert writer.mark_problem() == ""


@pytest.mark.parametrize("content", [None, b"", b"\0" * 2 * SLOT_BYTES, b"x" * 40])
def test_a_lost_mark_is_reported_and_written_again(tmp_path: Path, content: bytes | None) -> None:
    path = filled(tmp_path)
    if content is None:
        mark_path(path).unlink()
    else:
        mark_path(path).write_bytes(content)
    with JournalReader.open_readonly(path, events=EVENTS) as journal:
        assert "a lost end of the journal would not be noticed" in journal.mark_problem()
    with Journal.open(path, events=EVENTS) as writer:
        assert len(writer.notes) == 1
    with Journal.open(path, events=EVENTS) as writer:
        assert writer.notes == [] and writer.mark_problem() == ""


def test_a_mark_of_other_events_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path)
    marks = MarkFile(path, storage=Storage())
    marks.read()
    marks.write(150, "00" * 32, durable=True)
    assert is_refused(path)


def test_what_follows_the_marks_does_no_harm(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with mark_path(path).open("ab") as file:
        file.write(b"something else" * 20)
    with Journal.open(path, events=EVENTS) as journal:
        journal.append(counted(200), wall_time=0.0)
        journal.commit()
        assert journal.notes == []
    mark, damaged_slots = read_mark(path)
    assert mark is not None and (mark.seq, damaged_slots) == (201, 0)
