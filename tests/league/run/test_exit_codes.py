"""Exit codes of training commands: a run that was stopped is told from one that has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from league.errors import PREEMPTED
from league.hosts.inprocess import InProcessRuntime
from league.run.budget import Limits
from league.run.daemon_status import DaemonStatus
from league.run.launch import train
from league.run.monitor.observer import Observer
from league.store.run_folder import RunFolder
from tests.league.commands import league
from tests.league.tiny_runs import ONE_PLAYER, tiny, write_config

SCRIPT = Path(__file__).parents[3] / "docs" / "deploy" / "slurm.sh"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_leaves_with_a_code_of_its_own_and_a_finished_one_with_zero(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(tmp_path, tiny(league=ONE_PLAYER, budget={"env_steps": 3_000}))
    observe, sent = Observer.observe, []

    def stop(self: Observer, status: DaemonStatus) -> None:
        observe(self, status)
        if status.spent.env_steps and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Observer, "observe", stop)
    assert league("train", config, "--run-dir", tmp_path / "run", "--no-eval").code == PREEMPTED == 75
    assert league("resume", tmp_path / "run", "--env-steps", "100", "--no-eval").code == 0, "a limit is no stop"
    assert league("resume", tmp_path / "run", "--no-eval").code == 0


def test_a_stop_while_the_hosts_start_waits_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_config(tmp_path, tiny(league=ONE_PLAYER, budget={"env_steps": 3_000}))

    def start(self: InProcessRuntime) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(InProcessRuntime, "start", start)
        league("train", config, "--run-dir", tmp_path / "run", "--no-eval")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == PREEMPTED
    assert RunFolder(tmp_path / "run").read_status().phase == "stopped"
    assert league("resume", tmp_path / "run", "--no-eval").code == 0


@pytest.mark.parametrize(("code", "is_queued"), [(75, True), (0, False), (2, False), (137, False)])
def test_the_job_script_queues_a_stopped_run_again_and_no_other(code: int, is_queued: bool, tmp_path: Path) -> None:
    programs = {
        "srun": '"$@"',
        "scontrol": f'echo "$@" >> {tmp_path}/queued',
        "league": f'cd {tmp_path}; echo "$@" >> called; mkdir -p run; touch run/config.yaml; exit {code}',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    places = {"RUN": f"{tmp_path}/run", "CONFIG": "mine.yaml", "SLURM_JOB_ID": "7"}
    environment = {**os.environ, **places, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for _ in range(2):
        assert subprocess.run(["bash", SCRIPT], env=environment, check=False).returncode == code
    called = (tmp_path / "called").read_text().splitlines()
    assert called == [f"train mine.yaml --run-dir {tmp_path}/run", f"resume {tmp_path}/run"]
    assert (tmp_path / "queued").exists() == is_queued


def test_at_a_prompt_a_second_interrupt_ends_the_call_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind it ignores them
    config = write_config(tmp_path, tiny(league=ONE_PLAYER, budget={"env_steps": 3_000}))
    observe = Observer.observe

    def interrupt(self: Observer, status: DaemonStatus) -> None:
        observe(self, status)
        if status.spent.env_steps:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Observer, "observe", interrupt)
        train(config, overrides=(), run_dir=tmp_path / "run", limits=Limits())
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert league("resume", tmp_path / "run", "--env-steps", "100", "--no-eval").code == 0


def test_a_stop_while_the_command_loads_says_nothing() -> None:
    """As a Ctrl-C does that comes as the module of all commands is looked for."""
    program = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "league.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from league.__main__ import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", program, "presets"], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")
