"""Runs in the background as an operator drives them: real processes, a tiny game."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from league.errors import LeagueError
from league.http.token_file import known_tokens, tokens_in
from league.run.control.lifecycle import _show_stage, bring_up, row_of, run_rows, take_down
from league.store.known_runs import known_runs, note_run
from league.store.lock import Holder, start_ticks, this_process
from league.store.run_folder import RunFolder, RunStatus
from league.store.supervision import Supervision, read_supervision, write_supervision
from tests.league.commands import league, wait_until
from tests.league.tiny_runs import start, tiny, write_config


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a run that is brought up for the first test that needs it; whatever the last leaves of it ends."""
    path = tmp_path_factory.mktemp("lifecycle") / "run"
    yield path
    league("down", path, "--now")


@pytest.fixture
def known(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, of the only run that is known: up, or down as the test before has left it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(made.parent / "state"))
    if not made.exists():
        bring(write_config(made.parent, tiny()), "--run-dir", made)
    return made


@pytest.fixture
def run(known: Path) -> Path:
    """The same, of a run that is up."""
    if not row_of(RunFolder(known)).live:
        bring(known)
    return known


def bring(*words: object) -> None:
    made = league("up", *words, "--no-eval")
    assert made.code == 0, made.err
    assert "is up (pid" in made.out


def daemon_of(path: Path) -> Holder:
    status = RunFolder(path).read_status()
    assert status is not None
    return status.daemon


def wait_for_another_daemon(path: Path, before: Holder) -> None:
    def is_there() -> bool:
        row = row_of(RunFolder(path))
        return row.live and row.pid != before.pid and row.phase == "running"

    wait_until(is_there, "another daemon", deadline_s=90.0)


def test_the_loss_of_the_terminal_ends_nothing(run: Path) -> None:
    before, supervision = daemon_of(run), read_supervision(RunFolder(run))
    assert supervision is not None
    os.kill(supervision.supervisor.pid, signal.SIGHUP)
    os.kill(before.pid, signal.SIGHUP)
    steps = row_of(RunFolder(run)).env_steps
    wait_until(lambda: row_of(RunFolder(run)).env_steps > steps, "further steps")
    assert daemon_of(run) == before


def test_a_killed_supervisor_takes_its_run_down_in_order(run: Path) -> None:
    supervision = read_supervision(RunFolder(run))
    assert supervision is not None
    os.kill(supervision.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not row_of(RunFolder(run)).live, "the end of the run")
    assert row_of(RunFolder(run)).phase == "stopped"
    assert "console" in league("logs", run, "--list").out
    assert league("logs", run, "-n", 5).out.strip()
    missing = league("logs", run, "--host", "learner-7")
    assert missing.code == 2
    assert "daemon" in missing.err
    assert "steps" in league("top", run, "--once").out


def test_restart_and_leaving_at_once(run: Path) -> None:
    before, tokens = daemon_of(run), tokens_in(RunFolder(run).tokens_path)
    assert league("up", run, "--new-tokens").code == 2
    assert known_tokens(RunFolder(run).tokens_path) == tokens, "a live run keeps its tokens"
    assert league("restart", run, "--new-tokens").code == 0
    assert daemon_of(run).pid != before.pid
    last = read_supervision(RunFolder(run))
    assert last is not None and (last.no_eval, last.no_restart) == (True, False), "as `league up` had them"
    assert known_tokens(RunFolder(run).tokens_path) is None, "they are made by the next server that needs them"
    assert league("down", run, "--now", "--wait", 20).code == 0
    assert not row_of(RunFolder(run)).live


def test_settings_of_a_stopped_run_change_as_it_comes_up(known: Path) -> None:
    run = known
    if row_of(RunFolder(run)).live:
        assert league("down", run, "--now").code == 0
    refused = league("up", run, "-s", "learner.learning_rate=-1")
    assert (refused.code, "learner.learning_rate" in refused.err) == (2, True)
    assert league("up", run, "--run-dir", run).code == 2
    assert league("up", run, "-s", "learner.learning_rate=0.000125", "--no-eval").code == 0
    assert "learning_rate: 0.000125" in RunFolder(run).read_config()


def test_a_run_in_the_background_survives_a_kill_and_ends_by_down(run: Path) -> None:
    assert [row["run"] for row in league("ps", "--json").json["runs"]] == [str(run)]
    again = league("up", run)
    assert again.code == 2
    assert "league down" in again.err

    killed = daemon_of(run)
    os.kill(killed.pid, signal.SIGKILL)
    wait_for_another_daemon(run, killed)
    report = league("status", run, "--json").json
    assert (report["supervised"], report["restarts"], report["last_crash"]) == (True, 1, "signal 9")

    down = league("down", run)
    assert down.code == 0, down.err
    assert "is down: stopped" in down.out
    row = row_of(RunFolder(run))
    assert (row.live, row.supervised, row.phase) == (False, False, "stopped")
    assert league("verify", run).code == 0
    assert league("down", run).out.strip().endswith("is not running.")
    assert league("ps", "--json").json["runs"] == []
    assert [row["phase"] for row in league("ps", "--all", "--json").json["runs"] if row["run"] == str(run)] == [
        "stopped"
    ]


def test_a_heartbeat_from_before_is_not_taken_for_that_of_a_run_that_does_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the clock has gone back since, so that it lies in the future."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = RunFolder.create(tmp_path / "run", config_yaml="env: {id: x}\n")
    dead = Holder(1 << 22, "elsewhere", 1)
    folder.write_status(RunStatus(dead, "running", time.time(), time.time() + 1e6, 1))
    with pytest.raises(LeagueError, match="--no-such"):
        bring_up(folder.path, again=["resume", "--no-such"], restart=False, wait_s=60.0)


def test_a_run_whose_budget_is_spent_is_not_said_to_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    start(tmp_path, tiny(budget={"env_steps": 400}), env_steps=400)
    made = league("up", tmp_path / "run", "--no-eval")
    assert made.code == 0, made.err
    assert "budget is spent" in made.out
    assert "is up" not in made.out
    league("down", tmp_path / "run", "--now")


def test_a_configuration_that_is_refused_is_reported_at_once(tmp_path: Path) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text("env: {id: tic_tac_toe}\nlearner: {batch_rws: 3}\n")
    ran = league("up", config, "--run-dir", tmp_path / "run")
    assert ran.code == 2
    assert "learner.batch_rws" in ran.err
    assert not (tmp_path / "run").exists()


def test_what_the_run_refuses_is_reported_as_its_own_command_would(tmp_path: Path) -> None:
    path = tmp_path / "run"
    config = write_config(tmp_path, tiny(env={"id": f"{tmp_path}/absent.py:make"}))
    ran = league("up", config, "--run-dir", path)
    assert ran.code == 2
    assert "absent.py" in ran.err
    assert "Traceback" not in ran.err
    assert not row_of(RunFolder(path)).supervised


@pytest.mark.parametrize(
    ("phase", "heartbeat_at", "shown", "message"),
    [
        (None, 0.0, "starting", ""),
        ("stopped", 1.0, "starting", ""),
        ("stopped", 3.0, "ending", "the budget is spent"),
        ("failed", 3.0, "restarting", "the budget is spent"),
        ("running", 3.0, "restarting", "the budget is spent"),
    ],
)
def test_a_supervised_run_without_a_daemon_is_listed_as_it_is(
    phase: str | None, heartbeat_at: float, shown: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = RunFolder.create(tmp_path / "run", config_yaml="env: {id: tic_tac_toe}")
    note_run(folder.path)
    write_supervision(folder, Supervision(this_process(folder.path), started_at=2.0))
    if phase is not None:
        dead = Holder(pid=2**22 + 1, host=socket.gethostname(), started=1)
        folder.write_status(RunStatus(dead, phase, 0.5, heartbeat_at, 1, message="the budget is spent"))
    [row] = run_rows(everything=False)
    assert (row.phase, row.message, row.live, row.supervised) == (shown, message, False, True)


def test_known_runs_leave_out_what_is_gone(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "one", config_yaml="env: {id: tic_tac_toe}")
    note_run(folder.path)
    assert folder.path in [known.path for known in known_runs()]
    folder.config_path.unlink()
    assert folder.path not in [known.path for known in known_runs()]


def test_the_seconds_of_a_stage_are_counted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log of the run repeats a stage every few seconds, and so does the command that shows it."""
    folder = RunFolder(tmp_path / "run")
    folder.console_log_path.parent.mkdir(parents=True)
    shown = ""
    with caplog.at_level("INFO"):
        for line in ("playing nim ...", "playing nim: 5 s so far ...", "playing nim: 10 s so far ...", "starting ..."):
            with folder.console_log_path.open("a") as log:
                log.write(f"league: {line}\n")
            shown = _show_stage(folder, 0, shown)
    assert caplog.messages == ["run: playing nim", "run: starting"]


def test_a_run_that_is_taken_down_while_it_starts_is_said_to_have_not_started(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.config_path.touch()
    starting = subprocess.Popen(["sleep", "60"])
    holder = replace(this_process(folder.path), pid=starting.pid, started=start_ticks(starting.pid))
    folder.write_status(RunStatus(holder, "starting", 0.0, 0.0, 0))
    assert take_down(folder.path, now=False, wait_s=20.0).endswith("is down: it had not started yet.")
    assert starting.wait(timeout=60.0) == -signal.SIGTERM
