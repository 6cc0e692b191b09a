"""Ends of child processes: the wait for one that was killed, and an exit code in words."""

from __future__ import annotations

import logging
import signal
import subprocess
from typing import Protocol

logger = logging.getLogger(__name__)

KILLED_S = 10.0
"""Longest wait for a process that was killed. The kernel ends it at once, unless it is stuck in a device or a disk."""


class Killed(Protocol):
    """A process that was killed."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    def wait(self, timeout: float | None = None) -> int: ...


def wait_for_killed(process: Killed) -> bool:
    """Wait until a process that was killed is gone; returns False, with a line in the log, where it is stuck.

    A stuck one runs no code of its own any more, and ends once the kernel lets it.
    """
    try:
        process.wait(KILLED_S)
    except subprocess.TimeoutExpired:
        logger.warning("process %d was killed and is not gone after %g s; nobody waits for it", process.pid, KILLED_S)
        return False
    return True


def ending(code: int) -> str:
    """The end of a process in a few words. code: as `Popen.returncode`, below 0 for a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
