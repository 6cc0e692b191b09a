"""What was committed is there, in order and unchanged, or the journal says that it is not."""

from __future__ import annotations

import ctypes
import errno
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.errors import DiskFull, JournalError, StorageError
from league.store.journal import Journal
from league.store.journal_reader import GENESIS, JournalReader
from league.store.storage import Storage
from tests.league.store.journal_cases import EVENTS, Counted, Seat, Started, counted, create, filled, numbers
from tests.league.store.store_faults import DieAt, Died, FailAtPoint


def test_events_come_back_equal_and_in_order(tmp_path: Path) -> None:
    events = [Started(1), Counted(2, (Seat("bot:random", 0.25), Seat("main-0", 0.75)), "ü"), Counted(3)]
    with create(tmp_path) as journal:
        assert journal.append(events, wall_time=5.0) == range(1, 4)
        assert journal.commit() == 3
        assert list(journal.replay()) == list(enumerate(events, start=1))
        assert list(journal.replay(from_seq=3)) == [(3, events[2])]
        assert list(journal.replay(from_seq=2, to_seq=2)) == [(2, events[1])]


IN_USE = 7
"""Place of `uordblks`, bytes that are in use, among the ten numbers of glibc's mallinfo2."""


class Malloc(ctypes.Structure):
    """What mallinfo2 returns."""

    _fields_ = (("numbers", ctypes.c_size_t * 10),)


def test_a_journal_keeps_little_of_what_it_has_written(tmp_path: Path) -> None:
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        pytest.skip("only glibc tells what malloc has given out")
    mallinfo2.restype = Malloc
    used = []
    with create(tmp_path) as journal:
        for _ in range(4):
            for _ in range(10):
                journal.append([Counted(number, (), "x" * 400) for number in range(100)], wall_time=0.0)
                journal.commit()
            used.append(mallinfo2().numbers[IN_USE])
    assert used[-1] - used[0] < 256 * 1024, "a daemon of months would grow by what sqlite holds"


def test_nothing_is_durable_before_commit(tmp_path: Path) -> None:
    with create(tmp_path) as journal:
        journal.append(counted(1), wall_time=0.0)
        assert journal.num_pending == 1
        assert journal.head().seq == 0
        assert journal.head().chain == GENESIS.hex()
        journal.commit()
        assert (journal.num_pending, journal.head().seq) == (0, 1)


def test_numbers_and_chain_continue_after_reopening(tmp_path: Path) -> None:
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


def test_a_reader_sees_commits_while_the_writer_works(tmp_path: Path) -> None:
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
    with create(tmp_path, storage=Storage(hook=FailAtPoint("journal.before_commit", errno.ENOSPC))) as journal:
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
    with create(tmp_path, storage=Storage(hook=FailAtPoint("journal.before_commit", errno.EIO))) as journal:
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
