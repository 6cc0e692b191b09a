"""Child processes have deadlines: also one that is killed and cannot end, as in an uninterruptible sleep."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from league.envs.workers import child_endings
from league.envs.workers.process import GamesProcess, ProcessDeadlines
from league.hosts.on_ray.fork_server import HostForks
from league.operate.chaos.follower import Command
from league.processes.child_process import end_process, run_within
from league.processes.line_worker import LineWorker
from league.run.control.page_process import page_process
from league.store.run_folder import RunFolder

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """No process is seen to end; returns those that were waited for."""
    waited: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen.wait

    def wait(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        assert timeout is not None, "a wait without a deadline"
        waited.append(process)
        raise subprocess.TimeoutExpired(process.args, timeout)

    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "wait", wait)
        yield waited
    for process in waited:
        real(process)


def end_child(folder: Path) -> None:
    end_process(subprocess.Popen(SLEEP, start_new_session=True))


def end_games(folder: Path) -> None:
    config = {"id": "tic_tac_toe", "kwargs": {}, "workers": 0}
    process = GamesProcess(config, num_games=1, first=0, deadlines=ProcessDeadlines(1.0, 1.0, 1024))
    process.start()
    process.close()


def end_engine(folder: Path) -> None:
    LineWorker(["cat"]).end()


def end_page(folder: Path) -> None:
    run = RunFolder.create(folder / "run", config_yaml="")
    with page_process(run, say=lambda _: None):
        pass


def end_fork_server(folder: Path) -> None:
    server = HostForks(folder)
    server.listen()
    server.start(os.getpid())
    server.close()


def end_followed(folder: Path) -> None:
    process = Command(["--help"], log=folder / "log")
    process.start()
    process.kill()


@pytest.mark.parametrize("end", [end_child, end_games, end_engine, end_page, end_fork_server, end_followed])
def test_a_killed_process_that_does_not_end_is_left_with_a_line_in_the_log(
    end: Callable[[Path], None],
    stuck: list[subprocess.Popen[bytes]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        end(tmp_path)
    assert [f"process {stuck[-1].pid} was killed and is not gone after 10 s" in text for text in caplog.messages] == [
        True
    ]


def test_a_program_is_run_to_its_end_and_its_output_returned() -> None:
    code = "import os, sys; print(os.environ['WORD'] + sys.stdin.read()); sys.exit('no')"
    done = run_within([sys.executable, "-c", code], timeout_s=60.0, env={**os.environ, "WORD": "yes"})
    assert (done.returncode, done.stdout, done.stderr) == (1, b"yes\n", b"no\n")


def test_a_program_that_takes_too_long_is_killed_and_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen.kill
    monkeypatch.setattr(child_endings, "KILLED_S", 0.05)

    def kill(process: subprocess.Popen[bytes]) -> None:
        started.append(process)

    monkeypatch.setattr(subprocess.Popen, "kill", kill)
    with caplog.at_level(logging.WARNING), pytest.raises(subprocess.TimeoutExpired):
        run_within(SLEEP, timeout_s=0.05)
    (process,) = started
    assert f"process {process.pid} was killed and is not gone" in caplog.text
    real(process)
    assert process.wait() == -9
