"""Following a journal from outside, and telling which processes still run."""

import subprocess
import sys
from pathlib import Path

import pytest

from league.core.state.events import EVENTS, LeaseExpired, RunStarted
from league.errors import JournalError
from league.operate.chaos import follower as journal_follower
from league.operate.chaos.leftovers import command_line, left_of, remains_of
from league.processes.reaper import descendants
from league.store.journal import Journal
from league.store.lock import start_ticks


@pytest.fixture
def child():
    """A process below this one that does nothing."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def test_each_event_is_seen_once_and_in_order(tmp_path: Path):
    path = tmp_path / "journal.db"
    follower = journal_follower.JournalFollower(path, monotonic=lambda: 7.0)
    assert follower.poll() == []
    journal = Journal.create(path, events=EVENTS)
    journal.append([RunStarted(1), LeaseExpired(1, "x")], wall_time=0.0)
    assert follower.poll() == []
    journal.commit()
    assert follower.poll() == [
        journal_follower.Noted(1, 7.0, RunStarted(1)),
        journal_follower.Noted(2, 7.0, LeaseExpired(1, "x")),
    ]
    journal.append([RunStarted(2)], wall_time=0.0)
    journal.commit()
    assert follower.poll() == [journal_follower.Noted(3, 7.0, RunStarted(2))]
    assert follower.poll() == []
    follower.close()
    journal.close()


def test_a_damaged_journal_is_not_passed_over(tmp_path: Path):
    path = tmp_path / "journal.db"
    path.write_bytes(b"not a journal" * 1000)
    with pytest.raises(JournalError):
        journal_follower.JournalFollower(path).poll()


def test_events_are_distinguished_by_kind():
    noted = [journal_follower.Noted(1, 0.0, RunStarted(1)), journal_follower.Noted(2, 0.0, LeaseExpired(1, "x"))]
    assert journal_follower.of_kind(noted, LeaseExpired) == [(noted[1], LeaseExpired(1, "x"))]


def test_a_later_process_of_the_same_id_is_not_the_one_that_ran(child):
    start = start_ticks(child.pid)
    assert journal_follower.still_running({child.pid: start}) == {child.pid: start}
    assert journal_follower.still_running({child.pid: start - 1}) == {}


def test_an_ended_process_does_not_run(child):
    seen = {child.pid: start_ticks(child.pid)}
    child.kill()
    assert journal_follower.wait_for(lambda: not journal_follower.still_running(seen), deadline_s=60.0)


def test_waiting_ends_at_the_deadline():
    clock = iter([0.0, 1.0, 2.0])
    assert not journal_follower.wait_for(lambda: False, deadline_s=2.0, look_s=0.0, monotonic=lambda: next(clock))


def test_the_time_of_children_counts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journal_follower, "descendants", lambda root: {8: 0, 9: 0})
    monkeypatch.setattr(journal_follower, "cpu_seconds", {7: 1.0, 8: 2.0, 9: 4.0}.__getitem__)
    assert journal_follower.tree_core_seconds(7) == 7.0


def test_processes_and_folders_of_a_daemon_are_seen_until_they_are_gone(
    child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "lg-4000001-abc"
    folder.mkdir()
    below = {child.pid: start_ticks(child.pid)}
    remains = remains_of(4000001, below, now=0.0)
    assert len(left_of(remains)) == 2
    child.kill()
    assert journal_follower.wait_for(lambda: left_of(remains) == [f"path {folder}"], deadline_s=60.0)
    folder.rmdir()
    assert left_of(remains) == []


def test_a_folder_made_after_the_census_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remains = remains_of(4000002, {}, now=0.0)
    (tmp_path / "lg-4000002-late").mkdir()
    assert len(left_of(remains)) == 1


def test_a_process_started_after_the_census_is_seen_by_the_folder_that_it_names(tmp_path: Path):
    remains = remains_of(4000003, {}, now=0.0)
    late = subprocess.Popen([sys.executable, "-S", "-c", "input()", "lg-4000003-late"], stdin=subprocess.PIPE)
    try:
        assert journal_follower.wait_for(lambda: "lg-4000003-late" in command_line(late.pid), deadline_s=60.0)
        assert [line.split(":")[0] for line in left_of(remains)] == [f"process {late.pid}"]
    finally:
        late.kill()
        late.wait()


def test_closing_a_command_ends_it_and_what_runs_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{sys.executable} -S -c 'import time; time.sleep(600)' &\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(journal_follower, "league_program", lambda: str(program))
    command = journal_follower.Command(["train"], log=tmp_path / "log")
    command.start()
    assert journal_follower.wait_for(lambda: len(descendants(command.pid)) == 1, deadline_s=60.0)
    census = command.census()
    assert len(census) == 2
    command.close()
    command.close()
    assert journal_follower.wait_for(lambda: not journal_follower.still_running(census), deadline_s=60.0)


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho the reason\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(journal_follower, "league_program", lambda: str(program))
    command = journal_follower.Command(["train", "x"], log=tmp_path / "log")
    command.start()
    assert journal_follower.wait_for(lambda: command.ended is not None, deadline_s=60.0)
    text = str(command.failure("it ended"))
    assert "`league train x` (left with code 3): it ended" in text
    assert text.endswith("the reason")
