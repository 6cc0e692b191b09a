"""Child processes: bound to the life of their parent, and ended with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

from envs.workers.child_endings import wait_for_killed

PR_SET_PDEATHSIG = 1


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
