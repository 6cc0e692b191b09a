"""The faults themselves. Each strikes processes that are below the run's own daemon, or a copy of its folder."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from league.errors import LeagueError
from league.operate.chaos.leftovers import command_line
from league.operate.chaos.plan import FORK_SERVER, HEAD
from league.operate.history.backup import back_up
from league.processes.reaper import descendants
from league.see.reports.verify import verify_run
from league.store.lock import start_ticks
from league.store.storage import Storage

PROGRAMS = {HEAD: "gcs_server", FORK_SERVER: "league.hosts.on_ray.fork_server"}
"""Target -> name of its program."""

SLOW_CYCLE_S = 0.2

FOLDERS = {"snapshot": ("snapshots", "*/*/weights.safetensors"), "checkpoint": ("checkpoints", "*/*.ckpt")}
"""Kind of file -> its folder in a run and its files there."""

Idle = Callable[[float], object]
"""Watches the run for so many seconds."""


def helper_of(daemon: int, target: str) -> int:
    """Process id of the head of a daemon's own Ray, or of the process from which its hosts are forked; 0 for none."""
    found = [pid for pid in descendants(daemon) if PROGRAMS[target] in command_line(pid).partition(" --")[0]]
    return found[0] if found else 0


def stop_for(pid: int, seconds: float, *, idle: Idle) -> None:
    """SIGSTOP to a process, and SIGCONT after so long."""
    with _stopped(pid):
        idle(seconds)


def slow_for(pid: int, seconds: float, *, idle: Idle) -> None:
    """A process runs for half of the time only."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and start_ticks(pid):
        with _stopped(pid):
            time.sleep(SLOW_CYCLE_S / 2.0)
        idle(SLOW_CYCLE_S / 2.0)


def fill_for(pid: int, seconds: float, *, idle: Idle) -> None:
    """No file of a process can grow for so long, as on a full disk; what it has on the disk stays."""
    try:
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    except ProcessLookupError:
        return
    idle(seconds)
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def damage_copy(run: Path, kind: str, *, place: float, folder: Path) -> tuple[bool, str]:
    """Damage one byte of a copy of the run and see whether `league verify` finds it.

    Args:
      kind: "snapshot", "checkpoint" or "journal". place: in [0, 1), of the file and of the byte.
      folder: for the copy, which is removed again.
    Returns:
      Whether it was found or changes nothing, and a sentence about it.
    """
    copy = folder / "damaged-copy"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        back_up(run, copy)
        if kind == "journal":
            path = copy / "journal.db"
        else:
            where, pattern = FOLDERS[kind]
            files = sorted(path for path in (copy / where).glob(pattern) if path.is_file())
            if not files:
                return True, f"there was no {kind} yet"
            path = files[int(place * len(files))]
        before = verify_run(copy).journal_hash if kind == "journal" else ""
        content = bytearray(path.read_bytes())
        byte = int(place * 7919 * len(content)) % len(content)
        content[byte] ^= 1 << int(place * 8)
        Storage().atomic_write_bytes(path, bytes(content))
        found = verify_run(copy)
        if found.problems:
            return True, f"a byte of {path.relative_to(copy)} was damaged: {found.problems[0]}"
        same = before == found.journal_hash
        sentence = f"byte {byte} of {path.relative_to(copy)} was damaged"
        return same, f"{sentence}, which changes no event" if same else f"{sentence}, unnoticed"
    except LeagueError as error:
        return True, f"the copy is refused: {error}"
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """A process does nothing meanwhile; the process of that very start alone is sent on."""
    start = start_ticks(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if start and start_ticks(pid) == start:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
