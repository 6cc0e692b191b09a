"""The `league` command as a user runs it: in this process for what it prints, as a process of its own for signals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from league.cli.main import main
from tests.forked_python import COMMAND, ForkedPython

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
PROGRESS = re.compile(r"league: .* \.\.\.|[\d,]+ of [\d,]+ \w+(, about .* left)?")


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code, and what it wrote but for progress on stderr, which depends on its speed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def league(*arguments: object) -> Ran:
    """Run a command in this process; anything but an exit of its own is a bug and comes through."""
    out, err, before, code = io.StringIO(), io.StringIO(), sys.argv, -1
    sys.argv = ["league", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.argv = before
    said = [line for line in err.getvalue().splitlines(keepends=True) if not PROGRESS.fullmatch(line.rstrip("\n"))]
    return Ran(code, out.getvalue(), "".join(said))


def spawn(*arguments: object) -> subprocess.Popen[str]:
    """Start a command as a process of its own, in a session of its own, which need not import first."""
    return ForkedPython(COMMAND, *map(str, arguments), **_of_a_command())


def spawn_fresh(*arguments: object) -> subprocess.Popen[str]:
    """As `spawn`, by an interpreter that starts: all that this brings along, and what /proc shows, are a user's."""
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, start_new_session=True, **_of_a_command())


def _of_a_command() -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def wait_until(condition: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Return as soon as the condition holds; fail after the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{what} did not come within {deadline_s:g} s"
        time.sleep(0.02)


def wait_for_play(process: subprocess.Popen[str], run: Path, *, deadline_s: float = DEADLINE_S) -> None:
    """Wait until the daemon of that process is past its first games; fail with what it said where it ends before."""

    def is_playing() -> bool:
        if process.poll() is not None or not (run / "status.json").exists():
            return process.poll() is not None
        status = json.loads((run / "status.json").read_text())
        return status["daemon"]["pid"] == process.pid and status["phase"] == "running" and status["games"] > 0

    wait_until(is_playing, "play", deadline_s=deadline_s)
    assert process.poll() is None, process.communicate()
