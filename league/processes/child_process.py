"""Child processes: bound to the life of their parent, run to their end, or ended with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from league.envs.workers.child_endings import wait_for_killed

PR_SET_PDEATHSIG = 1
SESSION_KEY = "LEAGUE_SESSION_KEY"
"""Variable of the environment with a key that this process, its children and nobody else have."""


def session_key(*, create: bool) -> bytes | None:
    """The key that this process shares with its children alone; None where there is none and none is made."""
    if create:
        os.environ.setdefault(SESSION_KEY, secrets.token_hex(32))
    key = os.environ.get(SESSION_KEY, "")
    return key.encode() if key else None


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """In the new process: be sent a signal when the parent dies, however that happens; nothing where it cannot be."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def end_group(pid: int) -> None:
    """Kill the process group that a program of ours leads; nothing where it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its group, with all that it started, and close the pipes to it."""
    end_group(process.pid)
    wait_for_killed(process)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def run_within(
    command: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that reads nothing to its end; returns what it wrote.

    `subprocess.run` has a deadline too, but waits without one for the program that it kills.

    Args:
      env: its environment; None for that of this process.
    Raises:
      subprocess.TimeoutExpired: it took longer, and was killed. OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        finally:
            if process.returncode is None:
                process.kill()
                wait_for_killed(process)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
