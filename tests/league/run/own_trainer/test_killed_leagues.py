"""A program with a league may be killed at any instant: what it was told stays, and the next start works."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from league.core.league import apply
from league.core.state.events import EVENTS, Event, LeaseFinished, SnapshotAdded
from league.core.state.state import LeagueState, digest
from league.errors import JournalError
from league.store.journal_branch import BranchJournal
from league.store.journal_reader import JournalReader
from league.store.storage import Storage
from tests.league.run.own_trainer.own_leagues import WITH_EXPLOITER, add_due, open_league, ready
from tests.league.store.store_faults import DieAt, Died, Recorder
from tests.league.tiny_runs import state_of

EVERY = 7
"""Of the points at which a death is tried, as each takes two starts; 1 tries all 83 and takes 15 s."""


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder in memory where there is one: syncs need not be waited for."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def session(folder: Path, storage: Storage, told: list[str]) -> None:
    """A short program; told: what it was told is done."""
    league = open_league(folder, storage=storage)
    try:
        list(add_due(league, folder))
        told.append("snapshot")
        league.report(league.next_match(), 1, env_steps=50)
        told.append("report")
        league.close()
    except Died:
        with contextlib.suppress(Died, JournalError):  # what the end of a process does: its lock and files are let go
            league.close()
        raise


def test_a_death_at_any_write_loses_nothing_and_counts_nothing_twice(root: Path) -> None:
    recorder = Recorder()
    (root / "whole").mkdir()
    session(root / "whole", Storage(hook=recorder), [])
    assert len(recorder.passed) > 40
    for index in range(0, len(recorder.passed), EVERY):
        folder, told = root / str(index), list[str]()
        folder.mkdir()
        with pytest.raises(Died):
            session(folder, Storage(hook=DieAt(index)), told)
        if told:
            state = state_of(folder / "run")
            assert told.count("report") <= state.totals.games <= 1
            assert len(state.snapshots) == 1
        if not told or index % 2 == 0:
            with open_league(folder) as league:
                list(add_due(league, folder))
                games = league.games
                league.report(league.next_match(), 1)
                assert league.games == games + 1


def test_a_journal_that_is_cut_at_any_event_is_a_league_of_its_past(root: Path) -> None:
    with ready(root, WITH_EXPLOITER) as league:
        for _ in range(3):
            league.report(league.next_match(), 1, env_steps=200)  # a timeout's snapshot is due
            list(add_due(league, root))
    run, state = root / "run", LeagueState()
    (run / "journal.db").rename(root / "whole.db")
    with JournalReader.open_readonly(root / "whole.db", events=EVENTS) as whole:
        events = [cast(Event, event) for _, event in whole.replay()]
        assert sum(isinstance(event, SnapshotAdded) for event in events) >= 4
        for number, event in enumerate(events, start=1):
            (run / "status.json").unlink(missing_ok=True)
            for old in run.glob("journal*"):
                old.unlink()
            with cast(BranchJournal, BranchJournal.create(run / "journal.db", events=EVENTS)) as branch:
                branch.take_over(whole, to_seq=number)
            apply(state, event)
            assert digest(state_of(run)) == digest(state)
            games = sum(found.outcomes[0].games for found in events[:number] if isinstance(found, LeaseFinished))
            if state.config_text:
                with open_league(root, WITH_EXPLOITER) as league:
                    assert league.games == games
                    list(add_due(league, root))
                    assert league.next_match().player in league.players
