"""A small process of its own that ends what a killed daemon leaves behind.

A daemon that is killed outright cannot clean up, and some of Ray's helpers outlive their driver. The reaper keeps a
list of the processes below the daemon. When the daemon's end of the pipe closes, whatever the reason, it gives them a
moment to leave by themselves. Then it ends the rest. So it does with all that name Ray's folder, for one may have been
born since the last look, and its parent be dead. It removes the folder and ends too.

What ran below the daemon before the reaper is somebody else's, with all that it starts: training may be called from a
program with children of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

LOOK_S = 0.5
"""Time between two looks at the daemon's processes."""

GRACE_S = 1.0
"""Time that orphans have to leave by themselves."""

STAT_BYTES = 4096
"""More than the line of a process in /proc may have."""

LEAVE_S = 5.0
"""Longest wait for ended processes to be gone."""


class Reaper:
    """The daemon's end of the pipe.

    Args:
      folder: removed in the end; None for none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, ours: int = 0) -> None:
        """Start the process, in a session of its own so that a Ctrl-C on the terminal does not reach it.

        Args:
          ours: a process below the daemon that is not somebody else's, although it is there already; 0 for none.
        """
        others = ",".join(f"{pid}:{start}" for pid, start in descendants(os.getpid()).items() if pid != ours)
        folder = [] if self._folder is None else [str(self._folder)]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(Path(__file__).absolute()), str(os.getpid()), others, *folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Let the reaper end whatever still runs below this process, and wait for it; may be called twice."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=GRACE_S + LEAVE_S + 1.0)
        self._process = None


def descendants(root: int, *, without: Mapping[int, int] = MappingProxyType({})) -> dict[int, int]:
    """Process id -> start time (kernel ticks) of every process below `root`; empty where there is no /proc.

    Args:
      without: such processes that are left out, with all that is below them.
    """
    parents, starts = {}, {}
    for pid in _every_process():
        stat = _stat(pid)
        if stat is not None and stat[1] != without.get(pid):
            parents[pid], starts[pid] = stat
    below: dict[int, int] = {}
    frontier = {root}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier and pid not in below}
        below.update({pid: starts[pid] for pid in frontier})
    return below


def _every_process() -> list[int]:
    """The ids of all processes; none where there is no /proc."""
    try:
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> tuple[int, int] | None:
    """Parent and start time of a process; None where it is gone or only waits to be collected.

    Asked of every process of the machine several times a second, so that the objects of pathlib would show.
    """
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        fields = os.read(file, STAT_BYTES).rpartition(b")")[2].split(None, 20)
    except OSError:  # it has ended meanwhile
        return None
    finally:
        os.close(file)
    return None if fields[0] == b"Z" else (int(fields[1]), int(fields[19]))


def _working_in(folder: str) -> dict[int, int]:
    """Process id -> start time of every process with an option that says `folder`, as all of Ray's have.

    A reader's `tail -f` of a log there is none of them.
    """
    option, found = f"={folder}/".encode(), {}
    for pid in _every_process():
        stat = _stat(pid)
        with contextlib.suppress(OSError):
            if stat is not None and option in Path(f"/proc/{pid}/cmdline").read_bytes():
                found[pid] = stat[1]
    return found


def _alive(processes: dict[int, int]) -> dict[int, int]:
    """Those of the processes that still run, told from later ones of the same number by their start time."""
    found = {}
    for pid, start in processes.items():
        stat = _stat(pid)
        if stat is not None and stat[1] == start:
            found[pid] = start
    return found


def _wait_gone(processes: dict[int, int], timeout_s: float) -> dict[int, int]:
    deadline = time.monotonic() + timeout_s
    left = _alive(processes)
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = _alive(left)
    return left


def _watch(daemon: int, others: Mapping[int, int]) -> dict[int, int]:
    """Look at the daemon's processes until its end of the pipe closes; returns those still known then.

    Args:
      others: processes below the daemon that are somebody else's.
    """
    processes: dict[int, int] = {}
    while True:
        closed, _, _ = select.select([sys.stdin], [], [], LOOK_S)
        processes = _alive(processes)
        below = descendants(daemon, without=others)
        below.pop(os.getpid(), None)
        processes.update(below)
        if closed:
            return processes


def main() -> None:
    """Watch, then end what is left and remove the folder.

    Arguments: the daemon's process id; "id:start time" of each process that ran below it before; the folder or nothing.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    others = {int(pid): int(start) for pid, start in (other.split(":") for other in sys.argv[2].split(",") if other)}
    processes = _watch(int(sys.argv[1]), others)
    folders = sys.argv[3:]
    left = _wait_gone(processes, GRACE_S)
    for pid in list(left):
        left.update(descendants(pid))
    for folder in folders:
        left.update(_working_in(folder))
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    _wait_gone(left, LEAVE_S)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
