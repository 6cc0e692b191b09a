"""Old events put together and compressed are the same events under the same chain, and damage to them is found."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from league.errors import JournalError
from league.store import journal as journal_module
from league.store.journal import Journal
from league.store.journal_branch import BranchJournal
from league.store.journal_reader import JournalReader
from league.store.journal_segments import SEGMENT
from league.store.storage import Storage
from tests.league.store.journal_cases import EVENTS, Counted, Seat, change, counted, numbers
from tests.league.store.store_faults import DieAt, Died


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_EVENTS", 10)
    monkeypatch.setattr(journal_module, "PLAIN_EVENTS", 25)


def written(path: Path, *, count: int = 100, compacts: bool = True) -> Path:
    with Journal.create(path, events=EVENTS) as journal:
        for number in range(count):
            journal.append(counted(number), wall_time=float(number))
            journal.commit()
            if compacts:
                journal.compact()
    return path


def opened(path: Path) -> JournalReader:
    return JournalReader.open_readonly(path, events=EVENTS)


def test_a_compacted_journal_is_the_same_journal(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.db", compacts=False)
    with opened(plain) as one, opened(written(tmp_path / "compact.db")) as other:
        stored = other._connection.execute("SELECT count(*), sum(kind = ?) FROM events", (SEGMENT,)).fetchone()
        assert stored == (7 + 30, 7)
        assert other.verify() == one.verify()
        assert numbers(other) == list(range(100))
        for first in (1, 5, 10, 11, 69, 70, 71, 95):
            for last in (first, first + 1, 10, 68, 70, 71, 100):
                assert list(other.replay(from_seq=first, to_seq=last)) == list(one.replay(from_seq=first, to_seq=last))
        for seq in (0, 1, 9, 10, 11, 70, 71, 100):
            assert other.head_at(seq) == one.head_at(seq)


@pytest.mark.parametrize("to_seq", [3, 10, 15, 70, 71, 90])
def test_a_branch_and_a_cut_anywhere_hold(tmp_path: Path, to_seq: int) -> None:
    path = written(tmp_path / "a.db")
    with opened(path) as source, cast(BranchJournal, BranchJournal.create(tmp_path / "b.db", events=EVENTS)) as branch:
        assert branch.take_over(source, to_seq=to_seq) == source.head_at(to_seq)
        assert numbers(branch) == list(range(to_seq))
    with cast(BranchJournal, BranchJournal.open(path, events=EVENTS)) as journal:
        kept = journal.head_at(to_seq)
        journal.take_back(counted(999), to_seq=to_seq, wall_time=0.0)
        assert journal.head_at(to_seq) == kept
        assert numbers(journal) == [*range(to_seq), 999]
        journal.verify()
        for number in range(50):
            journal.append(counted(number), wall_time=0.0)
            journal.commit()
            journal.compact()
        assert numbers(journal) == [*range(to_seq), 999, *range(50)]
        journal.verify()


def test_any_flipped_bit_of_a_segment_is_found_by_all_who_read_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.db")
    with opened(path) as journal:
        (body,) = journal._connection.execute("SELECT body FROM events WHERE seq = 20").fetchone()
    rng = np.random.default_rng(0)
    for place in (0, 31, 32, len(body) - 1, *rng.integers(len(body), size=30).tolist()):
        spoilt = bytearray(body)
        spoilt[place] ^= 1 << int(rng.integers(8))
        change(path, "UPDATE events SET body = ? WHERE seq = 20", bytes(spoilt))
        with opened(path) as journal:
            with pytest.raises(JournalError, match="damaged"):
                journal.verify()
            with pytest.raises(JournalError, match="damaged"):
                list(journal.replay(from_seq=15, to_seq=16))
    change(path, "DELETE FROM events WHERE seq = 20")
    with opened(path) as journal, pytest.raises(JournalError, match="event 11 is missing"):
        journal.verify()


def test_death_while_events_are_put_together_leaves_them_as_they_were_or_together(tmp_path: Path) -> None:
    for point in (0, 1):
        path = written(tmp_path / f"{point}.db", compacts=False)
        dying = Journal.open(path, events=EVENTS, storage=Storage(hook=DieAt(point)))
        with pytest.raises(Died):
            dying.compact()
        dying.close()
        with Journal.open(path, events=EVENTS) as journal:
            journal.verify()
            assert numbers(journal) == list(range(100))
            while journal.compact():
                pass
            journal.verify()


def test_events_that_are_damaged_are_not_put_together(tmp_path: Path) -> None:
    path = written(tmp_path / "a.db", compacts=False)
    change(path, "UPDATE events SET body = '{}' WHERE seq = 5")
    with Journal.open(path, events=EVENTS) as journal, pytest.raises(JournalError, match="event 5 is not the one"):
        journal.compact()


def test_events_put_together_take_a_fraction_of_the_room(tmp_path: Path) -> None:
    sizes = []
    for compacts in (False, True):
        path = tmp_path / f"{compacts}.db"
        with Journal.create(path, events=EVENTS) as journal:
            for first in range(0, 1_000, 10):
                seats = tuple(Seat(f"main-{number}", number / 7.0) for number in range(10))
                journal.append([Counted(first + number, seats) for number in range(10)], wall_time=0.0)
                journal.commit()
                if compacts:
                    journal.compact()
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] / 4
