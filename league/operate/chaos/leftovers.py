"""Leftovers of a daemon after its end: processes, its Ray's folder, shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from league.http.socket_folder import temporary_folders
from league.operate.chaos.follower import still_running


@dataclass(frozen=True)
class Remains:
    """Processes and files of a daemon just before it was killed.

    Fields:
      daemon: its process id. killed_at: seconds of the monotonic clock.
      processes: id -> start time of all below it; paths: its Ray's folder and the shared memory they had mapped.
    """

    daemon: int
    killed_at: float
    processes: dict[int, int]
    paths: tuple[Path, ...]


def remains_of(daemon: int, below: Mapping[int, int], *, now: float) -> Remains:
    """Census of a daemon that still lives. below: id -> start time of the processes; now: of the monotonic clock."""
    folders = _ray_folders(daemon)
    mapped = {path for pid in below for path in shared_memory_of(pid)}
    return Remains(daemon, now, dict(below), (*folders, *mapped))


def _ray_folders(daemon: int) -> list[Path]:
    return [path for folder in set(temporary_folders()) for path in Path(folder).glob(f"{folder_stem(daemon)}*")]


def folder_stem(daemon: int) -> str:
    """The start of the name of the folder of a daemon's own Ray."""
    return f"lg-{daemon}-"


def shared_memory_of(pid: int) -> set[Path]:
    """Files under /dev/shm that a process has mapped and that still have a name."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    found = {line.split(maxsplit=5)[5] for line in lines if " /dev/shm/" in line}
    return {Path(path) for path in found if not path.endswith("(deleted)")}


def left_of(remains: Remains) -> list[str]:
    """Lists the remains of a killed daemon, one line each; also processes that were started after the census."""
    left = [f"process {pid}: {command_line(pid)}" for pid in still_running(remains.processes)]
    left += [f"path {path}" for path in remains.paths if path.exists()]
    stem = folder_stem(remains.daemon)
    left += [f"path {path}" for path in _ray_folders(remains.daemon) if path not in remains.paths]
    if left:
        return left
    others = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return [f"process {pid}: {command_line(pid)}" for pid in others if stem in command_line(pid)]


def command_line(pid: int) -> str:
    """The command line of a process; empty where it is gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""
