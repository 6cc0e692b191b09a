"""Reports that read a whole journal, made by a process of their own, so that no request waits for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from league.errors import LeagueError
from league.processes.child_process import run_within

LONGEST_S = 1_800.0


def report_json(path: Path, command: str) -> bytes:
    """The answer of `league COMMAND RUN --json`.

    Raises:
      LeagueError: with what the command says, or as it takes too long.
    """
    arguments = [sys.executable, "-m", "league", command, str(path), "--json"]
    try:
        done = run_within(arguments, timeout_s=LONGEST_S)
    except subprocess.TimeoutExpired as error:
        raise LeagueError(f"`league {command} {path}` takes more than {LONGEST_S:g} s.") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("league: ")
        raise LeagueError(said or f"`league {command} {path}` ended with code {done.returncode}.")
    return done.stdout
