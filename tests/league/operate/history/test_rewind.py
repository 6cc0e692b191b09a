"""A run taken back goes on from there; what came after is set aside whole, and nothing late from it counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from league.cli import history
from league.core.league import decide
from league.core.state.commands import FinishLease, Refused
from league.core.state.events import Event, LeagueRewound, LeaseGranted, RunStarted, RunStopped
from league.errors import JournalError, LeagueError, RunInUse
from league.operate.history.fork import fork_run
from league.operate.history.rewind import RewindReport, rewind_run
from league.run.control.lifecycle import row_of
from league.see.reports.lineage import read_lineage
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.commands import league
from tests.league.store.store_faults import DieAt, Died
from tests.league.tiny_runs import (
    ONE_PLAYER,
    checkpoints_of,
    events_of,
    go_on,
    head_of,
    history_of,
    start,
    state_of,
    tiny,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped, resumed and stopped again."""
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(runtime={"checkpoint_updates": 2}), env_steps=2_500)
    go_on(folder / "run", env_steps=2_500)
    return folder / "run"


def rewind(path: Path, at: int | str, *, storage: Storage | None = None) -> RewindReport:
    report = rewind_run(path, at=str(at), confirm=lambda plan: True, wall_time=lambda: 1.7e9, storage=storage)
    assert report is not None
    return report


def numbers_of(path: Path, kind: type[Event]) -> list[int]:
    """Numbers of the events of a kind."""
    return [seq for seq, event in enumerate(events_of(path), start=1) if isinstance(event, kind)]


def test_the_journal_ends_at_the_event_and_says_what_was_set_aside(run: Path) -> None:
    events, head = events_of(run), head_of(run)
    report = rewind(run, len(events) // 2)
    assert events_of(run)[:-1] == events[: report.event]
    rewound = events_of(run)[-1]
    assert isinstance(rewound, LeagueRewound)
    assert (rewound.event, rewound.ended, rewound.ended_chain) == (report.event, *head)
    assert report.set_aside == str(run / rewound.set_aside)
    assert report.events == head[0] - report.event
    assert f"taken back to event {report.event}, with" in read_lineage(run).text()
    assert verify_run(run).problems == ()


def test_a_run_taken_back_trains_on(run: Path) -> None:
    report = rewind(run, len(events_of(run)) // 2)
    before = state_of(run)
    go_on(run, env_steps=600)
    assert state_of(run).totals.env_steps >= before.totals.env_steps + 600
    assert verify_run(run).problems == ()
    started = events_of(run)[report.event : report.event + 2][-1]
    assert isinstance(started, RunStarted) and started.token == 3


def test_what_came_after_is_set_aside_as_a_whole_run_and_survives_the_training_that_follows(
    run: Path, made: Path, tmp_path: Path
) -> None:
    report = rewind(run, len(events_of(run)) // 2)
    go_on(run, env_steps=1_500)
    aside = Path(report.set_aside)
    assert head_of(aside) == head_of(made)
    assert verify_run(aside).problems == ()
    assert read_lineage(aside).lineage == read_lineage(made).lineage
    fork_run(aside, tmp_path / "again", at="latest")
    for path in (tmp_path / "again", made_copy := tmp_path / "made"):
        if path == made_copy:
            shutil.copytree(made, path)
        go_on(path, env_steps=300)
    assert checkpoints_of(tmp_path / "again") == checkpoints_of(made_copy)


def test_snapshots_that_came_after_stay_in_the_store(run: Path) -> None:
    stored = sorted(path.name for path in (run / "snapshots").glob("*/*"))
    report = rewind(run, len(events_of(run)) // 2)
    assert report.snapshots > 0
    assert sorted(path.name for path in (run / "snapshots").glob("*/*")) == stored


def test_a_late_answer_from_before_is_refused_although_its_lease_number_comes_again(run: Path) -> None:
    stops = numbers_of(run, RunStopped)
    late = next(event.lease for event in events_of(run)[stops[0] :] if isinstance(event, LeaseGranted))
    rewind(run, stops[0])
    go_on(run, env_steps=1)
    events = events_of(run)
    again = next(seq for seq, event in enumerate(events) if isinstance(event, LeaseGranted) and seq > stops[0])
    lease = events[again].lease  # type: ignore[union-attr]
    assert (lease.lease_id, late.token, lease.token) == (late.lease_id, 2, 3)
    rewind(run, again + 1)
    state = state_of(run)
    assert late.lease_id in state.leases
    with pytest.raises(Refused, match="belongs to run 3, the answer to run 2"):
        decide(state, FinishLease(late.lease_id, late.token, 0, ()), np.random.default_rng(0))


def test_tokens_are_never_given_twice_however_often_a_run_is_taken_back(run: Path) -> None:
    first_stop = numbers_of(run, RunStopped)[0]
    for token in (3, 4, 5):
        rewind(run, first_stop)
        go_on(run, env_steps=1)
        (started,) = (event for event in events_of(run)[first_stop:] if isinstance(event, RunStarted))
        assert started.token == token
    assert [path.name.split("-")[1] for path in sorted(run.glob("rewound-*"))] == ["1", "2", "3"]


def test_a_run_taken_back_to_its_last_stop_plays_on_as_it_would_have(tmp_path: Path) -> None:
    """As after a kill: the files beside the journal are those of the last stop, the journal is further."""
    plain = tiny(league=ONE_PLAYER)
    start(tmp_path, plain, env_steps=1_000)
    run, whole = tmp_path / "run", tmp_path / "whole"
    shutil.copytree(run, whole)
    stop = head_of(run)[0]
    kept = {name: (run / name).read_bytes() for name in ("hosts.safetensors", "clock.json")}
    go_on(run, env_steps=100)
    for name, content in kept.items():
        (run / name).unlink()
        (run / name).write_bytes(content)
    assert rewind(run, stop).same_games
    for path in (run, whole):
        go_on(path, env_steps=600)
    history = [event for event in history_of(run) if not isinstance(event, LeagueRewound)]
    assert history == history_of(whole)
    assert checkpoints_of(run) == checkpoints_of(whole)


def test_games_in_flight_of_a_later_moment_are_not_taken_up(run: Path) -> None:
    report = rewind(run, numbers_of(run, RunStopped)[0])
    assert not report.same_games
    assert not (run / "hosts.safetensors").exists()
    assert (Path(report.set_aside) / "hosts.safetensors").exists()


def test_games_in_flight_are_taken_up_at_a_stop_alone(run: Path) -> None:
    """Before it the learners were not saved: the games would bring rows of weights that nobody has trained yet."""
    last_stop = numbers_of(run, RunStopped)[-1]
    assert not rewind(run, last_stop - 1).same_games
    assert not (run / "hosts.safetensors").exists()


def test_a_run_whose_daemon_lives_is_not_taken_back(run: Path) -> None:
    before = head_of(run)
    with RunFolder.open(run).lock:
        with pytest.raises(RunInUse):
            rewind(run, 20)
        assert league("rewind", run, "--at", "20", "--yes").code == 2
    assert head_of(run) == before
    assert not list(run.glob("rewound-*"))


def test_a_journal_that_has_lost_events_is_not_taken_back(run: Path) -> None:
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps({**status, "journal_seq": head_of(run)[0] + 1}))
    with pytest.raises(JournalError, match="was durable"):
        rewind(run, 20)


@pytest.mark.parametrize("at", ["latest", "99999", "snapshot:nobody-s0"])
def test_there_must_be_something_to_take_back(run: Path, at: str) -> None:
    before = head_of(run)
    with pytest.raises(LeagueError, match=r"nothing to take back|there is no"):
        rewind(run, at)
    assert head_of(run) == before


def test_nothing_changes_before_the_user_said_yes(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and "journal" not in path.name}
    ran = league("rewind", run, "--at", "30")
    assert (ran.code, "add --yes" in ran.err) == (2, True)
    monkeypatch.setattr(history.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(history.typer, "confirm", lambda *text, **options: False)
    ran = league("rewind", run, "--at", "30")
    assert (ran.code, ran.out) == (1, "")
    assert "events" in ran.err and "to be set aside" in ran.err and "Nothing was changed" in ran.err
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and "journal" not in path.name}
    assert after.keys() == before.keys()
    assert {path.name for path in after if after[path] != before[path]} <= {"run.lock"}


def test_the_command_tells_what_it_did(run: Path) -> None:
    plain = league("rewind", run, "--at", "30", "--yes", "--json").json
    assert (plain["run"], plain["at"], plain["event"]) == (str(run), "30", 30)
    assert Path(plain["set_aside"]).is_dir()
    assert plain["warnings"] == sum(player["reason"] != "" for player in plain["players"])
    text = league("rewind", run, "--at", "20", "--yes").out
    assert "back to event 20; 11 events" in text and "set aside in" in text


def test_status_counts_what_is_left(run: Path) -> None:
    rewind(run, numbers_of(run, RunStopped)[0])
    status = league("status", run, "--json").json
    assert (status["phase"], status["live"]) == ("stopped", False)
    assert status["games"] == state_of(run).totals.games
    assert "taken back to event" in status["message"]
    row, state = row_of(RunFolder(run)), state_of(run)
    assert (row.env_steps, row.snapshots) == (state.totals.env_steps, len(state.snapshots)), "as `league ps` does"


def test_the_clock_goes_back_with_what_was_played(run: Path) -> None:
    before = json.loads((run / "clock.json").read_text())["spent"]
    report = rewind(run, numbers_of(run, RunStopped)[0])
    after = json.loads((run / "clock.json").read_text())["spent"]
    assert after["env_steps"] == before["env_steps"] - report.env_steps == state_of(run).totals.env_steps
    assert after["seconds"] == pytest.approx(before["seconds"] * after["env_steps"] / before["env_steps"])
    status = league("status", run, "--json").json
    assert (status["trained_s"], status["budget_left"]) == (after["seconds"], None)


def test_death_at_any_write_leaves_the_run_as_it_was_or_taken_back_and_the_next_attempt_ends_it(
    tmp_path: Path,
) -> None:
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=150)
    source, at = tmp_path / "run", 6
    head, clock = head_of(source), (source / "clock.json").read_bytes()
    finished = tmp_path / "finished"
    shutil.copytree(source, finished)
    rewind(finished, at)
    deaths, died_after = 0, 0
    while True:
        run = tmp_path / f"run-{deaths}"
        shutil.copytree(source, run)
        try:
            rewind(run, at, storage=Storage(hook=DieAt(deaths)))
            break
        except Died:
            deaths += 1
        if head_of(run) == head:
            rewind(run, at)
        else:
            died_after += 1
        problems = [problem for problem in verify_run(run).problems if "one of its two marks" not in problem]
        assert (head_of(run), problems) == (head_of(finished), [])
        assert (run / "clock.json").read_bytes() == (finished / "clock.json").read_bytes()
        (aside,) = run.glob("rewound-*")
        assert head_of(aside) == head
        assert (aside / "clock.json").read_bytes() == clock
        assert not list(run.glob(".tmp-*"))
        shutil.rmtree(run)
    assert deaths > 30
    assert died_after == 7, "right after the cut, and at three points of each of the two marks that follow"
