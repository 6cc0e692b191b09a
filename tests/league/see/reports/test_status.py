"""The status of a run agrees with its journal and its heartbeat, and says what went wrong."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest

from league.envs.protocol import EnvConfig
from league.errors import JournalError, MissingRun
from league.see.reports.doctor import examine_run
from league.see.reports.ratings import read_ratings
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from league.store.journaled_league import state_of_run
from league.store.lock import Holder, this_process
from league.store.run_folder import MAX_SILENCE_S, RunFolder, WorkerStatus
from league.wording import duration_text, size_text
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import MadeRun
from tests.league.tiny_runs import state_of


def test_reading_changes_nothing(run: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and "-shm" not in path.name}

    before = contents()
    read_status(run)
    read_ratings(run)
    verify_run(run)
    state_of_run(RunFolder.open(run))
    after = contents()
    assert {path: content for path, content in after.items() if "-wal" not in path.name} == {
        path: content for path, content in before.items() if "-wal" not in path.name
    }


def test_a_daemon_that_did_not_say_farewell_was_killed(run: Path) -> None:
    folder = RunFolder.open(run)
    status = folder.read_status()
    assert status is not None
    gone = Holder(pid=status.daemon.pid, host=status.daemon.host, started=status.daemon.started + 1)
    for phase, shown in (("running", "killed"), ("draining", "killed"), ("failed", "failed"), ("stopped", "stopped")):
        workers = (WorkerStatus("actor_host", 1),)
        fields = {**{name: getattr(status, name) for name in status.__dataclass_fields__}}
        folder.write_status(type(status)(**{**fields, "daemon": gone, "phase": phase, "workers": workers}))
        seen = read_status(run).daemon
        assert (seen.live, seen.status.phase, seen.status.workers, seen.status.steps_per_s) == (False, shown, (), 0.0)


def test_the_status_tells_what_went_wrong_and_is_silent_where_nothing_did(run: Path) -> None:
    troubles = {"aborted", "truncated", "refused", "hosts_lost"}
    sound = json.loads(read_status(run).to_json())
    assert {name: sound[name] for name in troubles} == dict.fromkeys(troubles, 0)
    assert "refused" not in read_status(run).text()
    folder = RunFolder.open(run)
    status = folder.read_status()
    assert status is not None
    fields = {name: getattr(status, name) for name in status.__dataclass_fields__}
    folder.write_status(type(status)(**{**fields, "refused": 3, "hosts_lost": 1}))
    report = read_status(run)
    assert (json.loads(report.to_json())["refused"], report.daemon.status.hosts_lost) == (3, 1)
    assert "3 answers refused, 1 host lost" in report.text()


def test_a_run_without_a_heartbeat_has_a_status_all_the_same(run: Path) -> None:
    (run / "status.json").unlink()
    report = read_status(run)
    assert (report.daemon.live, report.daemon.status.phase, report.daemon.status.daemon.pid) == (False, "stopped", 0)
    assert report.league.games == state_of(run).totals.games


def test_the_status_counts_players_as_the_journal_does(made: Path) -> None:
    report, state = read_status(made), state_of(made)
    (row,) = report.league.players
    player = state.players["main-0"]
    assert (row.version, row.trained_steps, row.games) == (player.version, player.trained_steps, player.games)
    assert (row.snapshots, row.resets) == (player.num_snapshots, player.generation)
    plain = json.loads(report.to_json())
    assert {"pid", "workers", "games", "env_steps", "steps_per_s", "players", "snapshots"} <= plain.keys()


def test_a_game_of_one_team_counts_what_it_returns(tmp_path: Path, run: Path) -> None:
    lone = MadeRun(tmp_path / "lone", env=EnvConfig("gymnasium:CartPole-v1")).close()
    assert "counts the return of its one team" in read_status(lone).text()
    assert examine_run(lone).counts == "the return of its one team"
    assert "counts games won" in read_status(run).text()


def test_what_is_no_run_is_said_to_be_none(tmp_path: Path, run: Path) -> None:
    with pytest.raises(MissingRun):
        verify_run(tmp_path)
    for path in run.glob("journal.db*"):
        path.unlink()
    assert "does not exist" in verify_run(run).problems[0]
    with pytest.raises(JournalError):
        read_status(run)


def rewrite_status(run: Path, **changes: Any) -> None:
    folder = RunFolder(run)
    status = folder.read_status()
    assert status is not None
    folder.write_status(dataclasses.replace(status, **changes))


def test_a_stopped_run_says_when_it_was_last_seen_what_it_has_used_and_its_size(run: Path) -> None:
    rewrite_status(run, heartbeat_at=time.time() - 7_300, trained_s=5_400.0, budget_spent=0.25)
    report = read_status(run)
    first, _, _, amounts, *_ = report.text().splitlines()
    assert first.startswith(f"{run}: stopped (not running, last heard of 2.0 h ago)")
    taken = sum(path.lstat().st_blocks * 512 for path in run.rglob("*") if path.is_file())
    assert report.disk_bytes == taken > 0
    assert amounts == f"trained for 1.5 h, 75% of the budget left, {size_text(taken)} on disk"


def test_a_run_says_what_of_its_budget_is_left(made: Path) -> None:
    plain = json.loads(read_status(made).to_json())
    assert plain["budget_left"] == pytest.approx(1.0 - 1_200 / 1_000_000, abs=0.002)
    assert plain["trained_s"] > 0


def test_a_daemon_of_another_host_is_alive_as_long_as_it_writes(run: Path) -> None:
    elsewhere = Holder(pid=7, host="elsewhere", started=1)
    rewrite_status(run, daemon=elsewhere, phase="running", heartbeat_at=time.time() - 30)
    assert read_status(run).daemon.live
    assert " steps/s," in read_status(run).text()
    rewrite_status(run, heartbeat_at=time.time() - 2 * MAX_SILENCE_S)
    report = read_status(run)
    assert "steps/s" not in report.text()
    seen = report.daemon
    assert (seen.live, seen.status.phase, seen.status.workers) == (False, "silent", ())
    assert "silent (not running, last heard of 10.0 min ago)" in report.text()


def test_a_live_daemon_that_has_not_written_for_minutes_is_reported(run: Path) -> None:
    rewrite_status(run, daemon=this_process(), phase="running", heartbeat_at=time.time() - 240)
    assert "last heard of 4.0 min ago" in read_status(run).text().splitlines()[0]
    rewrite_status(run, heartbeat_at=time.time())
    assert "sign of life" not in read_status(run).text()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59, "59 s"), (90, "1.5 min"), (7_200, "2.0 h"), (259_200, "3.0 d")]
)
def test_times_are_shown_in_the_unit_that_suits(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_sizes_are_shown_in_the_unit_that_suits() -> None:
    assert [size_text(number) for number in (0, 999, 1_500, 20_000_000, 3_100_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "20.0 MB",
        "3.1 GB",
    ]


def test_a_call_that_does_not_come_back_is_reported_while_its_daemon_lives(run: Path) -> None:
    call = "game 3 of own (episode 2, step 7) has been in step for 31 s"
    rewrite_status(run, daemon=this_process(), phase="running", heartbeat_at=time.time(), stuck=call)
    assert f"stuck: {call}" in read_status(run).text()
    rewrite_status(run, daemon=this_process(), phase="stopped", stuck=call)
    assert "stuck" not in read_status(run).text()


def test_the_status_of_a_run_is_one_screen_and_its_settings_are_asked_for(made: Path) -> None:
    shown, whole = league("status", made).out.splitlines(), league("status", made, "--settings").out
    assert len(shown) <= 23 and len(whole.splitlines()) >= len(shown) - 1
    report = read_status(made)
    player = report.league.players[0]
    crowd = dataclasses.replace(
        report, league=dataclasses.replace(report.league, players=(player,) * 40), settings={"seed": (0, "a reason")}
    )
    lines = crowd.screen().splitlines()
    assert "more lines" in lines[-2] and "1 setting chosen for it" in lines[-1]
    for width in (80, 200):
        assert sum(-(-len(line) // width) for line in crowd.screen(width=width).splitlines()) <= 23
