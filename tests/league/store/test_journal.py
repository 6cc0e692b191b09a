"""What was committed is there, in order and unchanged, or the journal says that it is not."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.errors import DiskFull, JournalError, StorageError
from league.store.journal import Journal
from league.store.journal_reader import GENESIS, JournalReader
from league.store.storage import Storage
from tests.league.store.store_faults import DieAt, Died, FailAt


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


def test_events_come_back_equal_and_in_order(tmp_path: Path) -> None:
    events = [Started(1), Counted(2, (Seat("bot:random", 0.25), Seat("main-0", 0.75)), "ü"), Counted(3)]
    with create(tmp_path) as journal:
        assert journal.append(events, wall_time=5.0) == range(1, 4)
        assert journal.commit() == 3
        assert list(journal.replay()) == list(enumerate(events, start=1))
        assert list(journal.replay(from_seq=3)) == [(3, events[2])]
        assert list(journal.replay(from_seq=2, to_seq=2)) == [(2, events[1])]


def test_nothing_is_durable_before_commit(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(counted(1), wall_time=0.0)
        assert journal.num_pending == 1
        assert journal.head().seq == 0
        assert journal.head().chain == GENESIS.hex()
        journal.commit()
        assert (journal.num_pending, journal.head().seq) == (0, 1)


def test_numbers_and_chain_go_on_after_reopening(tmp_path: Path) -> None:
    whole = create(tmp_path)
    whole.append(counted(1, 2, 3), wall_time=0.0)
    whole.commit()
    (tmp_path / "b").mkdir()
    parts = create(tmp_path / "b")
    for number in (1, 2, 3):
        parts.append(counted(number), wall_time=float(number))
        parts.commit()
        parts.close()
        parts = Journal.open(tmp_path / "b" / "journal.db", events=EVENTS)
    assert whole.head() == parts.head()
    whole.close()
    parts.close()


def test_the_clock_is_outside_the_chain_and_the_order_inside(tmp_path: Path) -> None:
    chains = []
    for index, (events, wall_time) in enumerate([((1, 2), 0.0), ((1, 2), 9.0), ((2, 1), 0.0)]):
        folder = tmp_path / str(index)
        folder.mkdir()
        with create(folder) as journal:
            journal.append(counted(*events), wall_time=wall_time)
            journal.commit()
            chains.append(journal.head().chain)
    assert chains[0] == chains[1] != chains[2]


@pytest.mark.parametrize(
    "event",
    [
        Counted(np.int64(3)),  # type: ignore[arg-type]
        Counted(1, [Seat("a", 0.5)]),  # type: ignore[arg-type]
        Counted(1, (Seat("a", float("nan")),)),
        Counted(1, (Seat("a", float("inf")),)),
        Counted("1"),  # type: ignore[arg-type]
        Seat("not registered", 1.0),
    ],
)
def test_an_event_that_would_not_read_back_equal_is_refused_whole(tmp_path: Path, event: object) -> None:
    with create(tmp_path) as journal:
        with pytest.raises(JournalError):
            journal.append([Counted(7), event], wall_time=0.0)
        assert journal.num_pending == 0
        journal.append(counted(8), wall_time=0.0)
        journal.commit()
        assert numbers(journal) == [8]


def test_a_reader_sees_commits_while_the_writer_goes_on(tmp_path: Path) -> None:
    with create(tmp_path) as journal, JournalReader.open_readonly(tmp_path / "journal.db", events=EVENTS) as reader:
        for number in range(5):
            journal.append(counted(number), wall_time=0.0)
            assert reader.head().seq == number
            journal.commit()
            assert reader.head() == journal.head()
        assert numbers(reader) == [0, 1, 2, 3, 4]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with JournalReader.open_readonly(path, events=EVENTS) as reader, pytest.raises(sqlite3.OperationalError):
        reader._connection.execute("DELETE FROM events")


def test_death_around_a_commit_leaves_all_of_the_group_or_none(tmp_path: Path) -> None:
    for index, survived in ((0, [1]), (1, [1, 2, 3])):
        folder = tmp_path / str(index)
        folder.mkdir()
        with create(folder) as journal:
            journal.append(counted(1), wall_time=0.0)
            journal.commit()
        dying = Journal.open(folder / "journal.db", events=EVENTS, storage=Storage(hook=DieAt(index)))
        dying.append(counted(2, 3), wall_time=0.0)
        with pytest.raises(Died):
            dying.commit()
        copy = tmp_path / f"copy-{index}"
        shutil.copytree(folder, copy)  # what the disk holds when the process is gone
        with Journal.open(copy / "journal.db", events=EVENTS) as journal:
            journal.verify()
            assert numbers(journal) == survived
        dying.close()


def test_a_full_disk_keeps_the_queue_and_the_next_commit_stores_it_once(tmp_path: Path) -> None:
    with create(tmp_path, storage=Storage(hook=FailAt(0, errno.ENOSPC))) as journal:
        journal.append(counted(0, 1), wall_time=0.0)
        with pytest.raises(DiskFull, match="is full"):
            journal.commit()
        assert (journal.num_pending, journal.head().seq) == (2, 0)
        journal.append(counted(2), wall_time=0.0)
        assert journal.commit() == 3
        assert journal.commit() == 3
        assert numbers(journal) == [0, 1, 2]
        journal.verify()


def test_a_broken_disk_is_no_full_disk(tmp_path: Path) -> None:
    with create(tmp_path, storage=Storage(hook=FailAt(0, errno.EIO))) as journal:
        journal.append(counted(0), wall_time=0.0)
        with pytest.raises(StorageError, match="Nothing of this step was stored") as caught:
            journal.commit()
        assert not isinstance(caught.value, DiskFull)


def test_sqlites_full_disk_is_ours_and_heals(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
        journal._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        journal.append([Counted(1, note="x" * 100_000)], wall_time=0.0)
        with pytest.raises(DiskFull, match="is full"):
            journal.commit()
        assert journal.head().seq == 0
        journal._connection.execute("PRAGMA max_page_count = 1000000")
        assert journal.commit() == 1
        journal.verify()


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.league.store.test_journal import EVENTS, counted
from league.store.journal import Journal
journal = Journal.create(Path(sys.argv[1]) / "journal.db", events=EVENTS)
number = 0
while True:
    journal.append(counted(number, number + 1, number + 2), wall_time=0.0)
    journal.commit()
    number += 3
    print(number, flush=True)
"""


def test_kill_loses_no_acknowledged_event(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(40)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        acknowledged = int([line for line in lines if line.endswith("\n")][-1])
    with JournalReader.open_readonly(tmp_path / "journal.db", events=EVENTS) as reader:
        assert reader.head().seq >= acknowledged
    with Journal.open(tmp_path / "journal.db", events=EVENTS, at_least_seq=acknowledged) as journal:
        found = numbers(journal)
        assert found == list(range(len(found)))
        assert len(found) % 3 == 0
        journal.verify()


def test_a_missing_or_foreign_or_empty_file_is_never_taken_for_a_new_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="does not exist"):
        Journal.open(tmp_path / "journal.db", events=EVENTS)
    for content in (b"", b"SQLite format 3\0" + b"\0" * 2000, os.urandom(5000)):
        (tmp_path / "journal.db").write_bytes(content)
        with pytest.raises(JournalError, match="damaged"):
            Journal.open(tmp_path / "journal.db", events=EVENTS)
        with pytest.raises(JournalError, match="damaged"):
            JournalReader.open_readonly(tmp_path / "journal.db", events=EVENTS)


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
    with pytest.raises(JournalError, match="schema version 99, this program writes version 1"):
        Journal.open(path, events=EVENTS)


def test_an_unknown_kind_of_event_names_the_way_out(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with (
        JournalReader.open_readonly(path, events={"Started": Started}) as journal,
        pytest.raises(JournalError, match=r"event 1 .* kind 'Counted', which this version does not know"),
    ):
        list(journal.replay())


def test_the_stored_state_is_the_newest_and_two_are_kept(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        assert journal.load_state() is None
        for number in range(4):
            journal.append(counted(number), wall_time=0.0)
            journal.commit()
            journal.save_state(f"state {number}".encode())
        stored = journal.load_state()
        assert stored is not None
        assert (stored.seq, stored.payload) == (4, b"state 3")
        assert journal._connection.execute("SELECT seq FROM states ORDER BY seq").fetchall() == [(3,), (4,)]
        journal.verify()


def test_a_state_may_not_run_ahead_of_the_events(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(counted(1), wall_time=0.0)
        with pytest.raises(AssertionError, match="commit before"):
            journal.save_state(b"state")


@pytest.mark.parametrize("column", ["payload", "digest", "chain"])
def test_a_spoilt_state_is_told_and_the_one_before_it_is_read(tmp_path: Path, column: str) -> None:
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


def test_a_closed_journal_can_be_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with JournalReader.open_readonly(path, events=EVENTS) as journal:
            assert len(numbers(journal)) == 200
    finally:
        tmp_path.chmod(0o755)


def test_close_twice_is_harmless(tmp_path: Path) -> None:
    journal = create(tmp_path)
    journal.close()
    journal.close()


@settings(max_examples=25, deadline=None)
@given(groups=st.lists(st.lists(st.integers(-(2**53), 2**53), max_size=5), max_size=8))
def test_any_grouping_of_the_same_events_gives_the_same_chain(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[int]]
) -> None:
    grouped, single = tmp_path_factory.mktemp("grouped"), tmp_path_factory.mktemp("single")
    with create(grouped) as first, create(single) as second:
        for group in groups:
            first.append(counted(*group), wall_time=0.0)
            first.commit()
        second.append(counted(*[number for group in groups for number in group]), wall_time=1.0)
        second.commit()
        assert first.head() == second.head()
        assert numbers(first) == [number for group in groups for number in group]
