"""An opened run is what a fresh reading gives, however the files grew meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from league.core.state.events import EVENTS
from league.core.state.probe_events import ProbeBegun, ProbeEnded, ProbeSpent
from league.core.state.records import ProbeOutcome, ProbeTask
from league.core.state.state import digest
from league.errors import JournalError, LeagueError
from league.see.page.runs import journal_fold
from league.see.page.runs.background import Background
from league.see.page.runs.journal_fold import ROUTINE, JournalFold, notable_events
from league.see.page.runs.library import Library
from league.see.page.runs.metric_history import MetricHistory
from league.see.page.runs.opened_run import OpenedRun
from league.store.journal import Journal
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from tests.league.commands import wait_until
from tests.league.see.page.page_runs import made_league, write_part, write_run


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def test_the_state_is_extended_from_the_tail(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    league, text = made_league(leases=40)
    folder = RunFolder.create(tmp_path / "run", config_yaml=text)
    Journal.create(folder.journal_path, events=EVENTS).close()
    write_part(folder, list(league.journal[:50]))
    run = OpenedRun(folder, "run", pool=pool)
    for first in range(50, len(league.journal), 33):
        write_part(folder, list(league.journal[first : first + 33]))
        run.refresh()
        assert run.seq == min(first + 33, len(league.journal))
    assert digest(run.state) == digest(state_of_run(folder)) == digest(league.state)
    assert [event.event for event in run.notable] == [
        event for event in league.journal[50:] if type(event).__name__ not in ROUTINE
    ]


def test_what_a_probe_has_used_so_far_is_no_notable_event(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """It is noted every few seconds: in weeks of a run nothing else would be seen, and the page would grow by it."""
    folder = write_run(tmp_path / "run")
    run = OpenedRun(folder, "run", pool=pool)
    (snapshot, *_) = run.state.snapshots
    task = ProbeTask(1, "past", snapshot, ())
    ended = ProbeEnded(ProbeOutcome(1, core_seconds=20.0, problem="it was late"))
    write_part(folder, [ProbeBegun(task), *(ProbeSpent(1, 5.0 * used, False) for used in range(1, 4)), ended])
    run.refresh()
    assert [noted.kind for noted in run.notable[-2:]] == ["ProbeBegun", "ProbeEnded"]


def test_events_count_once_where_reading_broke_off_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    league, text = made_league(leases=40)
    folder = RunFolder.create(tmp_path / "run", config_yaml=text)
    Journal.create(folder.journal_path, events=EVENTS).close()
    write_part(folder, list(league.journal[:50]))
    fold = JournalFold(folder)
    write_part(folder, list(league.journal[50:]))
    monkeypatch.setattr(journal_fold, "CHUNK", 10)
    entries = fold._reader.entries

    def breaks_off(from_seq: int, to_seq: int) -> list[Any]:
        if from_seq > 70:
            raise JournalError("the journal is busy")
        return entries(from_seq, to_seq)

    monkeypatch.setattr(fold._reader, "entries", breaks_off)
    with pytest.raises(JournalError):
        fold.extend()
    monkeypatch.setattr(fold._reader, "entries", entries)
    assert fold.extend() and not fold.extend()
    assert digest(fold.state) == digest(league.state)
    fold.close()


def test_the_history_reaches_back_to_the_first_event(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leases=30)
    found = notable_events(folder, 60, threading.Event())
    assert found[0].kind == "LeagueCreated" and found[-1].seq <= 60
    library = Library(folder.path)
    run = library.run("run")
    wait_until(lambda: run.has_history, "the history")
    assert [event.seq for event in run.notable] == [
        event.seq for event in notable_events(folder, run.seq, threading.Event())
    ]
    library.close()


def test_a_journal_that_was_taken_back_is_folded_again(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    folder = write_run(tmp_path / "run", leases=30)
    run = OpenedRun(folder, "run", pool=pool)
    before = run.seq
    other = write_run(tmp_path / "other", leases=12)
    other.journal_path.replace(folder.journal_path)
    run.refresh()
    assert run.seq < before
    assert digest(run.state) == digest(state_of_run(folder))


def test_metrics_are_followed_and_read_again_when_thinned(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [json.dumps({"step": step, "time": 0.0, "values": {"league/games": 2.0 * step}}) for step in range(20)]
    path.write_text("\n".join(rows[:10]) + "\n" + rows[10][:7])
    history = MetricHistory(path)
    assert history.extend() and list(history.series("league/games").steps) == list(range(10))
    with path.open("a") as file:
        file.write(rows[10][7:] + "\n" + "\n".join(rows[11:]) + "\n")
    assert history.extend() and list(history.series("league/games").values) == [2.0 * step for step in range(20)]
    assert not history.extend()
    thinned = tmp_path / "new"
    thinned.write_text("\n".join(rows[::2]) + "\n")
    thinned.replace(path)
    assert history.extend() and list(history.series("league/games").steps) == list(range(0, 20, 2))
    assert len(history.series("league/games", points=4).steps) == 4
    assert history.series("league/games", points=4).steps[-1] == 18
    assert (history.num_rows, history.last and history.last.step) == (10, 18)


def test_a_file_of_metrics_that_was_written_again_in_its_place_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [json.dumps({"step": step, "time": 0.0, "values": {"league/games": 2.0 * step}}) for step in range(20)]
    path.write_text("\n".join(rows[:10]) + "\n")
    history = MetricHistory(path)
    history.extend()
    path.write_text("\n".join(rows[5:]) + "\n")  # longer, and the same file by its number
    assert history.extend() and list(history.series("league/games").steps) == list(range(5, 20))
    assert history.num_rows == 15
    path.unlink()
    assert not history.extend()


def test_a_computation_repeats_only_when_the_journal_moved_and_seldom(pool: ThreadPoolExecutor) -> None:
    clock, calls, ready = [0.0], [0], threading.Semaphore(0)
    background = Background(pool, ready=ready.release, monotonic=lambda: clock[0])

    def ask(seq: int) -> object:
        return background.get("double", seq, lambda: seq, double, 2.0).value

    def double(given: object) -> object:
        assert isinstance(given, int)
        calls[0] += 1
        clock[0] += 1.0  # it takes a second, so that fifty go by without it
        if given == 3:
            raise LeagueError("three is no number")
        return 2 * given

    assert ask(1) is None and ready.acquire(timeout=60.0)
    assert ask(1) == 2 and ask(2) == 2 and calls[0] == 1
    clock[0] += 49.0
    assert ask(2) == 2 and calls[0] == 1
    clock[0] += 2.0
    assert ask(2) == 2 and ready.acquire(timeout=60.0) and ask(2) == 4
    clock[0] += 60.0
    ask(3)
    assert ready.acquire(timeout=60.0)
    assert background.get("double", 3, lambda: 3, double, 2.0).error == "three is no number"


def test_a_computation_whose_inputs_could_not_be_made_is_tried_again(pool: ThreadPoolExecutor) -> None:
    ready = threading.Semaphore(0)
    background = Background(pool, ready=ready.release)

    def no_inputs() -> object:
        raise LeagueError("not now")

    with pytest.raises(LeagueError, match="not now"):
        background.get("same", 1, no_inputs, lambda given: given, 0.0)
    background.get("same", 1, lambda: 7, lambda given: given, 0.0)
    assert ready.acquire(timeout=60.0)
    assert background.get("same", 1, lambda: 7, lambda given: given, 0.0).value == 7


def test_a_library_lists_folders_and_names_the_nearest(tmp_path: Path) -> None:
    write_run(tmp_path / "one", leases=2)
    write_run(tmp_path / "two", leases=2)
    (tmp_path / "notes").mkdir()
    library = Library(tmp_path)
    assert list(library.folders()) == ["one", "two"]
    assert library.run("two") is library.run("two")
    with pytest.raises(LeagueError, match="one"):
        library.run("ones")
    library.close()
    with pytest.raises(LeagueError, match="does not exist"):
        Library(tmp_path / "nothing")
    (tmp_path / "two" / "config.yaml").unlink()
    with pytest.raises(LeagueError, match="not a run folder"):
        Library(tmp_path / "two")
