"""`league gc`: plans which snapshots lose their weights, with reasons, and removes them in a stopped run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from league.config.loading import plain_config
from league.config.run_config import RetentionConfig
from league.core.retention import RETIRED, most_snapshots, plan_retention
from league.core.state.commands import RetireSnapshots
from league.core.state.events import EVENTS
from league.core.state.state import LeagueState
from league.errors import ConfigError, StorageError
from league.json_report import JsonReport
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague, read_state
from league.store.run_folder import HOSTS_FILE, RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage
from league.wording import counted


@dataclass(frozen=True)
class SnapshotFile:
    """The weights of a snapshot on disk. reason: why they stay, or go."""

    snapshot: str
    num_bytes: int
    reason: str


@dataclass
class GcReport(JsonReport):
    """The snapshots that lose their weights, and those that keep them.

    Fields:
      run: its folder. live: whether its daemon runs. keep: snapshots that may keep their weights.
      retired: those that lose them now. waiting: those retired before whose files are still there.
      kept: the others with weights. freed_bytes: of the files that go.
      done: whether it was done, and not only planned.
    """

    run: str
    live: bool
    keep: int
    retired: tuple[SnapshotFile, ...]
    waiting: tuple[SnapshotFile, ...]
    kept: tuple[SnapshotFile, ...]
    freed_bytes: int
    done: bool = False

    def text(self) -> str:
        going = [*self.retired, *self.waiting]
        size = f"{self.freed_bytes / 1e6:.1f} MB"
        if not self.done:
            verb, when = "would go", ""
        else:
            verb, when = ("go", " with the next snapshot") if self.live else ("are gone", "")
        lines = [
            f"{self.run}: the weights of {counted(len(going), 'snapshot')} {verb}{when} ({size}), {len(self.kept)} stay"
        ]
        if not going:
            kept = counted(len(self.kept), "snapshot")
            lines = [f"{self.run}: nothing goes; weights are kept of {kept}, of {self.keep} they may be"]
        lines += [f"  {'gone' if self.done else 'go  '}  {found.snapshot:<28} {found.reason}" for found in going]
        lines += [f"  stay  {found.snapshot:<28} {found.reason}" for found in self.kept]
        return "\n".join(lines)


def plan_gc(run: Path, *, keep: int | None) -> GcReport:
    """The plan of a collection; the run is only read.

    Args:
      keep: snapshots that may keep their weights; None for the limits of the run's configuration.
    Raises:
      MissingRun, JournalError, ConfigError, StorageError.
    """
    folder = RunFolder.open(run)
    live = folder.account().live
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        state = read_state(journal)
    return _planned(folder, state, keep=keep, live=live)


def collect_stopped(run: Path, *, keep: int | None, by: str, reason: str, storage: Storage | None = None) -> GcReport:
    """Remove the weights that can go; what it retires is in the journal first.

    Args:
      keep: as of `plan_gc`. by: user and machine, reason: for people; both for the journal.
    Raises:
      RunInUse: its daemon lives.
      LeagueError: one sentence for the user.
    """
    folder = RunFolder.open(run, storage=storage)
    with folder.lock:
        status = folder.read_status()
        at_least = 0 if status is None else status.journal_seq
        league = JournaledLeague.open(
            folder.journal_path, at_least_seq=at_least, wall_time=time.time, storage=folder.storage
        )
        try:
            report = _planned(folder, league.state, keep=keep, live=False)
            if report.retired:
                noted = dict(league.noted_files)
                note = f"by {by}" + (f": {reason}" if reason else "")
                spared = tuple(sorted(_in_flight(folder)))
                league.execute(RetireSnapshots(report.keep, is_exact=True, spared=spared, note=note))
                league.commit()
                league.note_files(noted)
            _remove(folder, league.state, [*report.retired, *report.waiting])
        finally:
            league.close()
    report.done = True
    return report


def _planned(folder: RunFolder, state: LeagueState, *, keep: int | None, live: bool) -> GcReport:
    sizes = dict(_sizes(folder, state))
    if keep is None:
        keep = _limit(folder, sizes)
    in_flight = set() if live else _in_flight(folder)  # the file is of the last stop
    plan = plan_retention(state, keep=keep, spared=in_flight)
    names = state.population.names
    absent = {names[number]: why for number, why in state.population.absent.items() if why.startswith(RETIRED)}
    waiting = [name for name in absent if name in sizes and name not in in_flight]
    going = {*plan.retired, *waiting}
    staying = {state.snapshots[name].digest for name in state.snapshots if name in plan.kept or name in in_flight}
    digests = {state.snapshots[name].digest: sizes.get(name, 0) for name in going}
    return GcReport(
        run=str(folder.path),
        live=live,
        keep=keep,
        retired=tuple(SnapshotFile(name, sizes.get(name, 0), "needed least") for name in plan.retired),
        waiting=tuple(SnapshotFile(name, sizes[name], absent[name]) for name in waiting),
        kept=tuple(SnapshotFile(name, sizes.get(name, 0), why) for name, why in plan.kept.items()),
        freed_bytes=sum(size for digest, size in digests.items() if digest not in staying),
    )


def _sizes(folder: RunFolder, state: LeagueState) -> Iterator[tuple[str, int]]:
    """Each snapshot whose weights are in the store, with their size."""
    store = LocalSnapshotStore(folder.snapshots_path)
    for name, known in state.snapshots.items():
        path = store.folder(known.digest)
        if path.is_dir():
            yield name, sum(file.stat().st_size for file in path.iterdir())


def _limit(folder: RunFolder, sizes: dict[str, int]) -> int:
    """Snapshots that the configuration allows."""
    plain, _ = plain_config(folder.read_config(), source=str(folder.config_path))
    given = plain.get("retention")
    limits = given if isinstance(given, dict) else {}
    try:
        count = int(limits.get("snapshots", RetentionConfig.snapshots))
        gib = float(limits.get("snapshots_gib", RetentionConfig.snapshots_gib))
    except (TypeError, ValueError) as error:
        raise ConfigError(str(folder.config_path), [f"retention: {error}"]) from error
    return most_snapshots(count, gib * 2**30, snapshot_bytes=max([*sizes.values(), 1]))


def _in_flight(folder: RunFolder) -> set[str]:
    """Policies of the games that the last stop kept: the next start needs their weights."""
    from league.hosts.actors.actor_state_file import decode_actor_state  # brings in the runtime

    try:
        hosts, _ = decode_actor_state(folder.read_resume_file(HOSTS_FILE))
    except (FileNotFoundError, StorageError):
        return set()
    return set(hosts.policies)


def _remove(folder: RunFolder, state: LeagueState, files: list[SnapshotFile]) -> None:
    """Remove weights that nothing else is of: no snapshot with weights, no game in flight, and no teacher."""
    plain, _ = plain_config(folder.read_config(), source=str(folder.config_path))
    teacher = plain.get("teacher")
    in_flight = _in_flight(folder)
    needed = {known.digest for name, known in state.snapshots.items() if state.is_present(name) or name in in_flight}
    needed.add(str(teacher.get("digest", "")) if isinstance(teacher, dict) else "")
    store = LocalSnapshotStore(folder.snapshots_path, storage=folder.storage)
    for found in files:
        digest = state.snapshots[found.snapshot].digest
        if digest not in needed:
            store.remove(digest)
