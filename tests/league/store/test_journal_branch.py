"""A journal with another's past, or with less of its own, holds from its first event on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from league.errors import DiskFull, JournalError
from league.store.journal import Journal
from league.store.journal_branch import BranchJournal
from league.store.journal_reader import JournalReader
from league.store.storage import Storage
from tests.league.store.store_faults import DieAt, Died, FailAt


@dataclass(frozen=True)
class Counted:
    number: int


@dataclass(frozen=True)
class Cut:
    at: int


EVENTS: dict[str, type] = {"Counted": Counted, "Cut": Cut}


def filled(path: Path) -> Path:
    """Thirty events, and a state stored after every tenth."""
    with Journal.create(path, events=EVENTS) as journal:
        for first in range(0, 30, 10):
            journal.append([Counted(number) for number in range(first, first + 10)], wall_time=float(first))
            journal.commit()
            journal.save_state(f"state {first + 10}".encode())
    return path


def empty(path: Path) -> BranchJournal:
    return cast(BranchJournal, BranchJournal.create(path, events=EVENTS))


def reopened(path: Path, storage: Storage | None = None) -> BranchJournal:
    return cast(BranchJournal, BranchJournal.open(path, events=EVENTS, storage=storage))


def events_of(path: Path) -> list[object]:
    with JournalReader.open_readonly(path, events=EVENTS) as journal:
        journal.verify()
        return [event for _, event in journal.replay()]


def test_a_branch_has_the_rows_of_its_source_bit_for_bit_and_continues_by_itself(tmp_path: Path) -> None:
    with JournalReader.open_readonly(filled(tmp_path / "a.db"), events=EVENTS) as source:
        with empty(tmp_path / "b.db") as branch:
            assert branch.take_over(source, to_seq=25) == source.head_at(25)
            assert list(branch.rows("events", to_seq=99)) == list(source.rows("events", to_seq=25))
            assert branch.append([Cut(25)], wall_time=0.0) == range(26, 27)
            branch.commit()
        assert source.head().seq == 30
    assert events_of(tmp_path / "b.db") == [*(Counted(number) for number in range(25)), Cut(25)]


def test_no_stored_state_that_is_newer_comes_along(tmp_path: Path) -> None:
    with JournalReader.open_readonly(filled(tmp_path / "a.db"), events=EVENTS) as source:
        for to_seq, stored_seq in ((30, 30), (29, 20), (20, 20), (19, None)):
            with empty(tmp_path / f"{to_seq}.db") as branch:
                branch.take_over(source, to_seq=to_seq)
                stored = branch.load_state()
                assert (None if stored is None else stored.seq) == stored_seq


def test_a_damaged_or_too_short_source_is_not_taken_over(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    for number, (to_seq, named) in enumerate(
        ((31, "ends at event 30 and not at event 31"), (25, "event 17 is not the"))
    ):
        if number:
            with reopened(path) as journal:
                journal._connection.execute("UPDATE events SET body = '{\"number\":1000}' WHERE seq = 17")
        with (
            JournalReader.open_readonly(path, events=EVENTS) as source,
            empty(tmp_path / f"{to_seq}.db") as branch,
            pytest.raises(JournalError, match=named),
        ):
            branch.take_over(source, to_seq=to_seq)


def test_what_is_read_at_one_moment_does_not_see_what_is_written_meanwhile(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    with JournalReader.open_readonly(path, events=EVENTS) as reader, reopened(path) as writer:
        with reader.one_moment():
            before = reader.head()
            writer.append([Counted(30)], wall_time=0.0)
            writer.commit()
            assert reader.head() == before
            with empty(tmp_path / "b.db") as branch:
                branch.take_over(reader, to_seq=before.seq)
        assert reader.head().seq == 31


def test_a_journal_taken_back_holds_and_continues(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    with reopened(path) as journal:
        kept = journal.head_at(12)
        assert journal.take_back([Cut(12)], to_seq=12, wall_time=0.0) == 13
        stored = journal.load_state()
        assert stored is None  # the two that were kept are of events 20 and 30
        assert journal.append([Counted(99)], wall_time=0.0) == range(14, 15)
        journal.commit()
        assert journal.head_at(12) == kept
    assert events_of(path) == [*(Counted(number) for number in range(12)), Cut(12), Counted(99)]


def test_a_state_stored_by_then_is_kept(tmp_path: Path) -> None:
    with reopened(filled(tmp_path / "a.db")) as journal:
        journal.take_back([Cut(25)], to_seq=25, wall_time=0.0)
        stored = journal.load_state()
        assert stored is not None and (stored.seq, stored.payload) == (20, b"state 20")
        journal.verify()


@pytest.mark.parametrize(("point", "length"), [(0, 30), (1, 30), (2, 30), (3, 30), (4, 13), (5, 13), (6, 13), (7, 13)])
def test_death_around_the_cut_leaves_all_of_it_or_none(tmp_path: Path, point: int, length: int) -> None:
    path = filled(tmp_path / "a.db")
    with reopened(path, Storage(hook=DieAt(point))) as journal, pytest.raises(Died):
        journal.take_back([Cut(12)], to_seq=12, wall_time=0.0)
    assert len(events_of(path)) == length
    reopened(path).close()


def test_a_full_disk_or_a_bad_event_changes_nothing_and_the_journal_continues(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.db")
    with reopened(path, Storage(hook=FailAt(0))) as journal:
        with pytest.raises(DiskFull):
            journal.take_back([Cut(12)], to_seq=12, wall_time=0.0)
        with pytest.raises(JournalError, match="cannot be recorded"):
            journal.take_back([Cut("12")], to_seq=12, wall_time=0.0)  # type: ignore[arg-type]
        assert journal.append([Counted(30)], wall_time=0.0) == range(31, 32)
        assert journal.commit() == 31
    assert events_of(path) == [Counted(number) for number in range(31)]
