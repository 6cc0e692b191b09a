"""Every command is heard of within a second: before heavy imports, at its stages, and in long silences."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from league.run.monitor.first_output import FirstOutput
from league.stages import begin_stage

ROOT = Path(__file__).parents[4]
SLOW = """
import sys, types
class Slow:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            sys.stdin.read()  # as long as it takes
sys.meta_path.insert(0, Slow())
from league.cli.main import main
main()
"""


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def wait_for(condition: object, *, deadline_s: float = 20.0) -> None:
    end = time.monotonic() + deadline_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        threading.Event().wait(0.01)


@pytest.mark.parametrize("command", [["eval", "x"], ["train", "tic_tac_toe"], ["init", "connect_four"]])
def test_a_command_is_heard_of_before_a_heavy_import_is_over(command: list[str]) -> None:
    """The import never ends here, as that of a cold machine may seem not to."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        readable, _, _ = select.select([process.stderr], [], [], 30.0)
        assert readable, "nothing within 30 s"
        assert os.read(process.stderr.fileno(), 1000).decode().endswith(" ...\n")
    finally:
        process.kill()
        process.communicate()


def test_a_silent_command_says_that_it_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("league.run.monitor.first_output.FIRST_AFTER_S", 0.0)
    lines: list[str] = []
    with FirstOutput("ratings"):
        wait_for(lambda: lines.extend(said(capsys)) or lines)
    assert lines == ["league: ratings starts ..."]


def test_a_command_that_answers_says_nothing_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("league.run.monitor.first_output.LOOK_EVERY_S", 0.001)
    with FirstOutput("ratings") as shown:
        print("an answer")
        monkeypatch.setattr("league.run.monitor.first_output.FIRST_AFTER_S", 0.0)
        monkeypatch.setattr("league.run.monitor.first_output.AGAIN_AFTER_S", 0.0)
        threading.Event().wait(0.05)
        shown.before_heavy_import()
    assert said(capsys) == []


def test_a_stage_is_shown_and_its_age_until_something_else_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FIRST_AFTER_S", "AGAIN_AFTER_S"):
        monkeypatch.setattr(f"league.run.monitor.first_output.{name}", 0.0)
    monkeypatch.setattr("league.run.monitor.first_output.LOOK_EVERY_S", 0.2)
    lines: list[str] = []
    with FirstOutput("init"):
        begin_stage("playing chess at random", seconds=1.6)
        wait_for(lambda: lines.extend(said(capsys)) or len(lines) > 1)
        print("a result")
        said(capsys)
        threading.Event().wait(0.3)
        assert said(capsys) == []
    assert lines[:2] == [
        "league: playing chess at random, about 2 s ...",
        "league: playing chess at random, about 2 s: 0 s so far ...",
    ]


def test_a_fork_of_a_command_says_nothing_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    with FirstOutput("train") as shown:
        pid = os.fork()
        if pid == 0:
            shown.before_heavy_import()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert said(capfd) == []


def test_the_streams_are_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    finders = list(sys.meta_path)
    with FirstOutput("init"):
        assert "write" in vars(sys.stdout)
    assert sys.meta_path == finders and "write" not in vars(sys.stdout)
    begin_stage("nobody shows this")
    assert said(capsys) == []
