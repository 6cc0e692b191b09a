"""Commands of `league` in processes of their own, so that no request waits for what reads a whole journal or trains."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from league.errors import LeagueError
from league.processes.child_process import run_within

LONGEST_S = 1_800.0


def command_output(arguments: Sequence[str], *, longest_s: float = LONGEST_S) -> bytes:
    """The standard output of `league ARGUMENTS`.

    Args:
      longest_s: seconds after which it is killed.
    Raises:
      LeagueError: with what the command says, or as it takes too long.
    """
    command = f"`league {' '.join(arguments[:2])}`"
    try:
        done = run_within([sys.executable, "-m", "league", *arguments], timeout_s=longest_s)
    except subprocess.TimeoutExpired as error:
        raise LeagueError(f"{command} takes more than {longest_s:g} s.") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        said = "\n".join(line for line in lines if not line.endswith(" ..."))  # the others are stages of its work
        raise LeagueError(said.strip().removeprefix("league: ") or f"{command} ended with code {done.returncode}.")
    return done.stdout


def written_by(arguments: Sequence[str], *, longest_s: float = LONGEST_S) -> bytes:
    """The file that `league ARGUMENTS FILE` writes; arguments and errors as of `command_output`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "written"
        command_output([*arguments, str(file)], longest_s=longest_s)
        return file.read_bytes()
