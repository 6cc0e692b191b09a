"""Work and cost of a run between two finished leases after a warm-up, measured from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from league.core.state.events import LeaseFinished, LeaseGranted, ProgressReported, SnapshotAdded
from league.operate.chaos.follower import LOOK_S, Command, JournalFollower, Noted, of_kind, tree_core_seconds
from league.processes.processor_time import cpu_seconds
from league.processes.reaper import descendants

START_UP_S = 180.0
"""Longest wait for the first finished lease."""

OVERRUN = 4.0
"""A window may last so many times as long as asked for before the run counts as stuck."""


@dataclass(frozen=True)
class Measured:
    """One run between two finished leases.

    Fields:
      trained: decisions learnt from. snapshots: frozen meanwhile.
      ray_core_seconds: those of Ray's own processes among `core_seconds`.
      memory_mib: of all processes at the end; what several share counts once.
    """

    env_steps: int
    core_seconds: float
    seconds: float
    trained: int
    snapshots: int
    ray_core_seconds: float = 0.0
    memory_mib: float = 0.0

    @property
    def per_core(self) -> float:
        """Plies per core-second."""
        return self.env_steps / self.core_seconds

    @property
    def ray_fraction(self) -> float:
        """Of the processor seconds, the part of Ray's own processes."""
        return self.ray_core_seconds / self.core_seconds

    @property
    def learnt_per_ply(self) -> float:
        """Decisions learnt from per ply."""
        return self.trained / self.env_steps


class Totals:
    """Sums over the events seen so far. homes: players for whom a lease has finished, so that their games are made."""

    def __init__(self) -> None:
        self.homes: set[str] = set()
        self.env_steps = 0
        self.snapshots = 0
        self._trained: dict[str, int] = {}
        self._home_of: dict[int, str] = {}

    @property
    def trained(self) -> int:
        """Decisions learnt from by all players."""
        return sum(self._trained.values())

    def add(self, noted: Iterable[Noted]) -> bool:
        """Count events; whether a lease finished among them."""
        noted = list(noted)
        for _, granted in of_kind(noted, LeaseGranted):
            if granted.lease.home is not None:
                self._home_of[granted.lease.lease_id] = granted.lease.home
        finished = of_kind(noted, LeaseFinished)
        self.homes |= {self._home_of[event.lease_id] for _, event in finished if event.lease_id in self._home_of}
        self.env_steps += sum(event.env_steps for _, event in finished)
        self.snapshots += len(of_kind(noted, SnapshotAdded))
        for _, event in of_kind(noted, ProgressReported):
            self._trained[event.progress.player] = event.progress.trained_steps
        return bool(finished)


@dataclass(frozen=True)
class Reading:
    """Totals and clocks at the moment when a finished lease was seen."""

    at: float
    core_seconds: float
    env_steps: int
    trained: int
    snapshots: int
    ray_core_seconds: float


def measure_run(
    settings: Mapping[str, object],
    *,
    players: int,
    seconds: float,
    warm_up_s: float,
    folder: Path,
    look: Callable[[], object] = lambda: None,
) -> Measured:
    """Run `league train` on these settings and watch it from outside.

    Args:
      settings: of the run. players: how many it has.
      seconds: of the window, at least.
      warm_up_s: from the first finished lease to the window, at least: it opens once every player has had a lease.
      look: called as the window opens and as it closes.
    Raises:
      RunFailed: it ended by itself or made no headway.
    """
    folder.mkdir()
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(dict(settings)))
    run = folder / "run"
    command = Command(["train", str(config), "--run-dir", str(run)], log=folder / "log")
    follower = JournalFollower(run / "journal.db")
    totals = Totals()
    command.start()
    try:
        first = _next_reading(command, follower, totals, after=0.0, deadline_s=START_UP_S)
        begin = _next_reading(
            command, follower, totals, after=first.at + warm_up_s, homes=players, deadline_s=START_UP_S
        )
        look()
        end = _next_reading(command, follower, totals, after=begin.at + seconds, deadline_s=OVERRUN * seconds + 60.0)
        look()
        memory_mib = tree_memory_mib(command.pid)
        if not command.stop():
            raise command.failure("it did not stop in good order")
    finally:
        follower.close()
        command.close()
    return Measured(
        env_steps=end.env_steps - begin.env_steps,
        core_seconds=end.core_seconds - begin.core_seconds,
        seconds=end.at - begin.at,
        trained=end.trained - begin.trained,
        snapshots=end.snapshots - begin.snapshots,
        ray_core_seconds=end.ray_core_seconds - begin.ray_core_seconds,
        memory_mib=memory_mib,
    )


def is_rays_own(command: str) -> bool:
    """True if a command line is that of a process of Ray itself, and not of a host that it runs for us."""
    return "/site-packages/ray/" in command or (command.startswith("ray::") and "HostProcess" not in command)


def ray_core_seconds(root: int) -> float:
    """Processor time that Ray's own processes below one have used."""
    return sum(cpu_seconds(pid) for pid in descendants(root) if is_rays_own(_read(pid, "cmdline")))


def tree_memory_mib(root: int) -> float:
    """Memory of a process and all below it, MiB; a page that several share counts once (Linux's Pss)."""
    lines = (line for pid in (root, *descendants(root)) for line in _read(pid, "smaps_rollup").splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024.0


def _read(pid: int, name: str) -> str:
    """A file of /proc as text; empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _next_reading(
    command: Command,
    follower: JournalFollower,
    totals: Totals,
    *,
    after: float,
    deadline_s: float,
    homes: int = 0,
) -> Reading:
    """The clocks when a lease finished, the first after a moment and after one for each of so many players."""
    deadline = time.monotonic() + deadline_s
    while True:
        finished = totals.add(follower.poll())
        now = time.monotonic()
        if finished and now >= after and len(totals.homes) >= homes:
            spent = tree_core_seconds(command.pid)
            of_ray = ray_core_seconds(command.pid)
            return Reading(now, spent, totals.env_steps, totals.trained, totals.snapshots, of_ray)
        if command.ended is not None or now >= deadline:
            raise command.failure(f"no lease finished within {deadline_s:.0f} s")
        time.sleep(LOOK_S)
