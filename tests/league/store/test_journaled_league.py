"""The league's state beside its journal: what is executed, what is durable, and that chance survives a restart."""

from __future__ import annotations

import gc
import itertools
import json
import sys
from pathlib import Path

import pytest

from benchmarks.durability.simulated.fake_hosts import outcomes_of
from league.core.state.commands import (
    ConfirmSnapshot,
    CreateLeague,
    FinishLease,
    Refused,
    RequestLease,
    RequestSnapshot,
    StartRun,
    StopRun,
)
from league.core.state.events import EVENTS, Event, LeaseGranted
from league.core.state.league_config import LeagueConfig
from league.core.state.state import digest, from_plain, to_plain
from league.errors import DiskFull, JournalError
from league.store import journaled_league as book_module
from league.store.journal import Journal
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague, read_state, verified_state


def created(path: Path) -> JournaledLeague:
    league = JournaledLeague.create(path, wall_time=lambda: 1.0)
    league.execute(CreateLeague(3, 2, (0, 1), LeagueConfig()))
    return league


def started(path: Path) -> JournaledLeague:
    """A league whose players all have their first snapshot."""
    league = created(path)
    league.execute(StartRun())
    for directive in list(league.state.directives.values()):
        league.execute(ConfirmSnapshot(directive.directive_id, "0" * 64, 0, 0))
    return league


def play(league: JournaledLeague) -> Event:
    """One lease, answered; returns its grant."""
    granted = next(event for event in league.execute(RequestLease("actor-0")) if isinstance(event, LeaseGranted))
    lease = granted.lease
    league.execute(FinishLease(lease.lease_id, lease.token, 100, outcomes_of(lease)))
    return granted


def read(path: Path) -> JournalReader:
    return JournalReader.open_readonly(path, events=EVENTS)


def test_a_stored_state_of_another_version_is_replayed_from_zero_and_verify_says_so(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    league = started(path)
    play(league)
    league.commit()
    plain = to_plain(league.state)
    assert isinstance(plain, dict)
    del plain["payoff"]["home"]  # type: ignore[attr-defined]  # a column that the other version did not have
    league._journal.save_state(json.dumps(plain).encode())
    expected = digest(league.state)
    league.close()
    with read(path) as journal:
        assert digest(read_state(journal)) == expected
        with pytest.raises(JournalError, match="another version"):
            verified_state(journal)


def test_an_answer_leaves_nothing_to_chance(tmp_path: Path) -> None:
    """It is given no generator of its own, so that one drawn from would not be the same after a restart."""
    league = started(tmp_path / "journal.db")
    before = league._unused.bit_generator.state
    for _ in range(30):
        play(league)
    assert league._unused.bit_generator.state == before


def test_a_lease_that_has_ended_leaves_nothing_in_memory(tmp_path: Path) -> None:
    league = started(tmp_path / "journal.db")

    def blocks_after(leases: int) -> int:
        for _ in range(leases):
            play(league)
        league.commit()
        gc.collect()
        return sys.getallocatedblocks()

    counts = [blocks_after(400), *(blocks_after(200) for _ in range(3))]
    growth = [after - before for before, after in itertools.pairwise(counts)]
    assert min(growth) < 100, growth  # one object kept of each lease makes 200 every time; other threads may add some


def test_what_is_executed_is_durable_after_the_commit_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    league = created(path)
    assert league.durable_seq == 0
    with read(path) as journal:
        assert journal.head().seq == 0
    league.commit()
    with read(path) as journal:
        assert journal.head().seq == league.durable_seq == league.head().seq > 0
        assert digest(read_state(journal)) == digest(league.state)


def test_an_uncommitted_tail_is_forgotten_and_the_rest_is_not(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    league = started(path)
    play(league)
    league.commit()
    before = digest(league.state)
    play(league)
    league.close()
    again = JournaledLeague.open(path, at_least_seq=league.durable_seq, wall_time=lambda: 1.0)
    assert digest(again.state) == before
    again.close()
    again.close()


def test_a_refused_command_changes_nothing(tmp_path: Path) -> None:
    league = started(tmp_path / "journal.db")
    league.commit()
    before = digest(league.state)
    with pytest.raises(Refused):
        league.execute(FinishLease(99, 1, 100, ()))
    league.commit()
    assert digest(league.state) == before
    assert league.head().seq == league.durable_seq


@pytest.mark.parametrize("is_durable", [True, False])
def test_commands_are_executed_all_or_none(tmp_path: Path, is_durable: bool) -> None:
    league = started(tmp_path / "journal.db")
    if is_durable:
        league.commit()
    before, number = digest(league.state), league.next_seq
    player = next(iter(league.state.players))
    with pytest.raises(Refused, match="nobody"):
        league.execute_all([RequestSnapshot(player, "manual"), RequestSnapshot("nobody", "manual")])
    assert (digest(league.state), league.next_seq) == (before, number)
    assert len(league.execute_all([RequestSnapshot(player, "manual"), RequestLease("actor-0")])) == 2
    league.commit()
    with read(tmp_path / "journal.db") as reader:
        assert digest(verified_state(reader)) == digest(league.state)
    league.close()


def test_what_is_durable_is_not_folded_twice_where_old_events_could_not_be_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    league = started(tmp_path / "journal.db")
    monkeypatch.setattr(Journal, "compact", lambda journal: raise_disk_full(tmp_path))
    with pytest.raises(DiskFull):
        league.commit()
    assert league.next_seq == league.head().seq + 1
    before, player = digest(league.state), next(iter(league.state.players))
    with pytest.raises(Refused, match="nobody"):
        league.execute_all([RequestSnapshot(player, "manual"), RequestSnapshot("nobody", "manual")])
    assert digest(league.state) == before
    league.close()


def raise_disk_full(path: Path) -> None:
    raise DiskFull(path)


def test_chance_does_not_depend_on_how_often_the_run_was_started(tmp_path: Path) -> None:
    whole, pieces = started(tmp_path / "whole.db"), started(tmp_path / "pieces.db")
    for turn in range(12):
        left = play(whole)
        if turn % 4 == 3:
            pieces.execute(StopRun("a stop"))
            pieces.commit()
            pieces.close()
            pieces = JournaledLeague.open(tmp_path / "pieces.db", at_least_seq=0, wall_time=lambda: 2.0)
            pieces.execute(StartRun())
        right = play(pieces)
        assert isinstance(left, LeaseGranted)
        assert isinstance(right, LeaseGranted)
        assert left.lease.assignments == right.lease.assignments
        assert left.lease.home == right.lease.home


def test_the_state_is_stored_from_time_to_time_and_a_restart_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_module, "SAVE_STATE_EVERY", 20)
    path = tmp_path / "journal.db"
    league = started(path)
    while league.head().seq < 60:
        play(league)
        league.commit()
    with read(path) as journal:
        stored = journal.load_state()
        assert stored is not None
        assert 40 <= stored.seq <= league.head().seq
        assert digest(read_state(journal)) == digest(league.state)
        assert digest(verified_state(journal)) == digest(league.state)


def test_starts_that_each_end_in_a_crash_store_the_state_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_module, "SAVE_STATE_EVERY", 40)
    path = tmp_path / "journal.db"
    started(path).commit()
    for _ in range(8):
        league = JournaledLeague.open(path, at_least_seq=0, wall_time=lambda: 1.0)
        league.execute(StartRun())
        for _ in range(5):
            play(league)
            league.commit()
    with read(path) as journal:
        stored = journal.load_state()
        assert stored is not None
        assert journal.head().seq - stored.seq < 40


def test_a_large_state_is_stored_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "SAVE_STATE_EVERY", 10)
    monkeypatch.setattr(book_module, "STATE_BYTES_PER_EVENT", 100)
    league = started(tmp_path / "journal.db")
    league.commit()
    with read(tmp_path / "journal.db") as journal:
        first = journal.load_state()
        assert first is not None
        for _ in range(15):
            play(league)
            league.commit()
        stored = journal.load_state()
    assert stored is not None
    assert stored.seq == first.seq, f"{len(first.payload)} bytes are worth {len(first.payload) // 100} events"


def test_a_stored_state_that_the_events_do_not_give_is_found(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    league = started(path)
    play(league)
    league.commit()
    forged = from_plain(to_plain(league.state))
    forged.totals.games += 1
    league.state = forged
    league.save_state()
    with read(path) as journal, pytest.raises(JournalError, match="is not what the events up to there give"):
        verified_state(journal)
    league.close()


def test_a_journal_that_is_shorter_than_it_was_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    league = created(path)
    league.commit()
    seq = league.durable_seq
    league.close()
    with pytest.raises(JournalError, match=f"event {seq + 1} was durable"):
        JournaledLeague.open(path, at_least_seq=seq + 1, wall_time=lambda: 1.0)
    with pytest.raises(JournalError, match="already exists"):
        JournaledLeague.create(path, wall_time=lambda: 1.0)
