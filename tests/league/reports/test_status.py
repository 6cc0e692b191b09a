"""What is said of a run from its folder alone, and that every kind of harm to it is found."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.core.metagame.ratings import RatingRow
from league.errors import JournalError, MissingRun
from league.reports import verify
from league.reports.env_check import check_environment
from league.reports.ratings import RatingsReport, read_ratings
from league.reports.status.report import read_status
from league.reports.status.run_size import duration_text, size_text
from league.reports.verify import verify_run
from league.store.journaled_league import state_of_run
from league.store.lock import Holder, this_process
from league.store.run_folder import MAX_SILENCE_S, RunFolder, WorkerStatus
from tests.league.tiny_runs import ONE_PLAYER, go_on, head_of, start, state_of, tiny


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league=ONE_PLAYER), env_steps=1_200)
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy that the test may harm."""
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def change_events(run: Path, statement: str) -> None:
    """Change the journal behind its own back."""
    with sqlite3.connect(run / "journal.db") as connection:
        connection.execute(statement)
    connection.close()


def test_a_sound_run_holds_and_says_what_was_checked(made: Path) -> None:
    report = verify_run(made)
    assert report.problems == ()
    assert (report.events, report.journal_hash) == head_of(made)
    assert len(report.checked) == 5
    assert "holds" in report.text()
    assert json.loads(report.to_json())["ok"] is True


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, 'main-0', 'main-1') WHERE kind = 'LeaseGranted'",
        "UPDATE events SET kind = 'RunStarted' WHERE seq = 7",
        "DELETE FROM events WHERE seq = 9",
        "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
        "UPDATE states SET payload = replace(payload, '\"games\":', '\"games\":1')",
    ],
)
def test_any_change_of_the_journal_is_found(run: Path, statement: str) -> None:
    change_events(run, statement)
    report = verify_run(run)
    assert report.problems, statement
    assert "does NOT hold" in report.text()


def test_a_missing_snapshot_and_a_missing_checkpoint_are_found(run: Path) -> None:
    info = next(iter(state_of(run).snapshots.values()))
    shutil.rmtree(run / "snapshots" / info.digest[:2] / info.digest)
    for path in run.glob("checkpoints/*/*.ckpt"):
        path.unlink()
    problems = verify_run(run).problems
    assert f"snapshot {info.snapshot_id} is in the journal and not in the store" in problems
    assert "the checkpoint of main-0 that the journal names is gone" in problems


def test_a_flipped_bit_anywhere_in_a_snapshot_is_found(run: Path) -> None:
    for path in [*run.glob("snapshots/*/*/*"), *run.glob("checkpoints/*/*.ckpt")]:
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            broken = bytearray(content)
            broken[place] ^= 1
            path.write_bytes(broken)
            assert verify_run(run).problems, f"{path} at {place}"
        path.write_bytes(content)
    assert verify_run(run).problems == ()


@pytest.mark.parametrize("name", ["clock.json", "hosts.safetensors", "journal.mark"])
def test_a_flipped_bit_beside_the_journal_is_found(run: Path, name: str) -> None:
    content = (run / name).read_bytes()
    rng = np.random.default_rng(0)
    for place in (0, len(content) - 1, *rng.integers(len(content), size=8).tolist()):
        broken = bytearray(content)
        broken[place] ^= 1 << int(rng.integers(8))
        (run / name).write_bytes(broken)
        assert any(name in problem for problem in verify_run(run).problems), f"{name} at {place}"
    (run / name).unlink()
    assert any(name in problem for problem in verify_run(run).problems)
    (run / name).write_bytes(content)
    assert verify_run(run).problems == ()


def test_a_clock_and_games_of_an_earlier_stop_are_found_and_not_gone_on_from(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {name: (run / name).read_bytes() for name in ("clock.json", "hosts.safetensors")}
    go_on(run, env_steps=900)
    for name, content in old.items():
        (run / name).write_bytes(content)
    found = verify_run(run).problems
    assert sum("is not the one that the last stop left" in problem for problem in found) == 2, found
    capsys.readouterr()
    go_on(run, env_steps=900)
    assert capsys.readouterr().out.replace("\n", " ").count("is not the one that the last stop left") == 2
    assert verify_run(run).problems == ()


def test_a_journal_that_lost_its_end_does_not_hold(run: Path) -> None:
    (run / "status.json").unlink()
    change_events(run, "DELETE FROM states")
    change_events(run, "DELETE FROM events WHERE seq > (SELECT max(seq) - 2 FROM events)")
    assert any("was durable" in problem for problem in verify_run(run).problems)


def test_a_damaged_stored_state_is_told_on_resume_and_the_run_goes_on(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_events(run, "UPDATE states SET payload = x'00' WHERE seq = (SELECT max(seq) FROM states)")
    assert any("the state stored after event" in problem for problem in verify_run(run).problems)
    assert read_status(run).league.games == state_of(run).totals.games > 0
    go_on(run, env_steps=200)
    assert "is not the one that was written: the events are read instead" in capsys.readouterr().out
    assert verify_run(run).problems == ()


def test_a_league_that_counts_other_games_than_its_journal_is_found(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for change, words in (
        ("totals", "games, the league counts"),
        ("payoff", "entries, the payoff holds"),
        ("scores", "not to their number"),
    ):
        state = state_of(made)
        if change == "totals":
            state.totals.games += 1
        elif change == "scores":
            state.payoff.scores.values[0] += 1.0
        else:
            state.payoff.totals.values[0] += 1
        monkeypatch.setattr(verify, "verified_state", lambda journal, state=state: state)
        assert any(words in problem for problem in verify_run(made).problems)


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
        seen = read_status(run).heartbeat
        assert (seen.live, seen.phase, seen.workers, seen.steps_per_s) == (False, shown, (), 0.0)


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
    assert (json.loads(report.to_json())["refused"], report.heartbeat.hosts_lost) == (3, 1)
    assert "3 answers refused, 1 hosts lost" in report.text()


def test_a_run_without_a_heartbeat_has_a_status_all_the_same(run: Path) -> None:
    (run / "status.json").unlink()
    report = read_status(run)
    assert (report.heartbeat.live, report.heartbeat.phase, report.heartbeat.pid) == (False, "stopped", 0)
    assert report.league.games == state_of(run).totals.games


def test_the_status_counts_players_as_the_journal_does(made: Path) -> None:
    report, state = read_status(made), state_of(made)
    (row,) = report.league.players
    player = state.players["main-0"]
    assert (row.version, row.trained_steps, row.games) == (player.version, player.trained_steps, player.games)
    assert (row.snapshots, row.resets) == (player.num_snapshots, player.generation)
    plain = json.loads(report.to_json())
    assert {"pid", "workers", "games", "env_steps", "steps_per_s", "players", "snapshots"} <= plain.keys()


def test_ratings_name_every_snapshot_with_an_interval_around_its_rating(made: Path) -> None:
    report = read_ratings(made)
    assert {row.policy for row in report.rows} == set(state_of(made).snapshots)
    assert all(row.low <= row.elo <= row.high for row in report.rows)


def test_a_rating_just_below_nothing_is_shown_without_a_minus() -> None:
    row = RatingRow("main-0-s0", elo=-0.3, low=-0.4, high=0.2, games=3)
    text = RatingsReport("run", (row,), "games won").text()
    assert " +0  " in text
    assert "[+0, +0]" in text
    assert "-0 " not in text.replace("main-0", "")


def test_what_is_no_run_is_said_to_be_none(tmp_path: Path, run: Path) -> None:
    with pytest.raises(MissingRun):
        verify_run(tmp_path)
    for path in run.glob("journal.db*"):
        path.unlink()
    assert "does not exist" in verify_run(run).problems[0]
    with pytest.raises(JournalError):
        read_status(run)


def test_options_of_a_game_are_read_as_yaml() -> None:
    assert check_environment("matrix_game", ["payoffs=[[0, 1], [-1, 0]]", "rounds=2"], seconds=0).problems == ()
    assert check_environment("matrix_game", ["payoffs=7"], seconds=0).problems


def rewrite_status(run: Path, **changes: Any) -> None:
    folder = RunFolder(run)
    status = folder.read_status()
    assert status is not None
    folder.write_status(dataclasses.replace(status, **changes))


def test_a_stopped_run_says_when_it_was_last_seen_what_it_has_used_and_its_size(run: Path) -> None:
    rewrite_status(run, heartbeat_at=time.time() - 7_300, trained_s=5_400.0, budget_spent=0.25)
    report = read_status(run)
    first, _, _, amounts, *_ = report.text().splitlines()
    assert first.startswith(f"{run}: stopped (not running, last sign of life 2.0 h ago)")
    taken = sum(path.lstat().st_blocks * 512 for path in run.rglob("*") if path.is_file())
    assert report.disk_bytes == taken > 0
    assert amounts == f"trained for 1.5 h, 75% of the budget left, {size_text(taken)} on disk"


def test_a_run_says_what_of_its_budget_is_left(made: Path) -> None:
    seen = read_status(made).heartbeat
    assert seen.budget_left == pytest.approx(1.0 - 1_200 / 1_000_000, abs=0.002)
    assert seen.trained_s is not None
    assert seen.trained_s > 0


def test_a_daemon_of_another_host_is_alive_as_long_as_it_writes(run: Path) -> None:
    elsewhere = Holder(pid=7, host="elsewhere", started=1)
    rewrite_status(run, daemon=elsewhere, phase="running", heartbeat_at=time.time() - 30)
    assert read_status(run).heartbeat.live
    rewrite_status(run, heartbeat_at=time.time() - 2 * MAX_SILENCE_S)
    report = read_status(run)
    seen = report.heartbeat
    assert (seen.live, seen.phase, seen.workers) == (False, "silent", ())
    assert "silent (not running, last sign of life 10.0 min ago)" in report.text()


def test_a_live_daemon_that_has_not_written_for_minutes_is_told(run: Path) -> None:
    rewrite_status(run, daemon=this_process(), phase="running", heartbeat_at=time.time() - 240)
    assert "last sign of life 4.0 min ago" in read_status(run).text().splitlines()[0]
    rewrite_status(run, heartbeat_at=time.time())
    assert "sign of life" not in read_status(run).text()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59, "59 s"), (90, "1.5 min"), (7_200, "2.0 h"), (259_200, "3.0 d")]
)
def test_times_are_told_in_the_unit_that_suits(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_sizes_are_told_in_the_unit_that_suits() -> None:
    assert [size_text(number) for number in (0, 999, 1_500, 20_000_000, 3_100_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "20.0 MB",
        "3.1 GB",
    ]


def test_a_call_that_does_not_come_back_is_told_while_its_daemon_lives(run: Path) -> None:
    call = "game 3 of own (episode 2, step 7) has been in step for 31 s"
    rewrite_status(run, daemon=this_process(), phase="running", heartbeat_at=time.time(), stuck=call)
    assert f"stuck: {call}" in read_status(run).text()
    rewrite_status(run, daemon=this_process(), phase="stopped", stuck=call)
    assert "stuck" not in read_status(run).text()
