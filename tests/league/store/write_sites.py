"""The production writers of a run's files, each with what may be read after a fault in the middle of a write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.core.state.commands import CreateLeague, StartRun
from league.core.state.events import EVENTS
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.core.state.state import digest
from league.errors import CorruptSnapshot, LeagueError, MissingRun, MissingSnapshot
from league.lab.trials.trial_folder import PLAN_FILE, TrialFolder
from league.run.budget import ClockFile, Spent
from league.run.control.door_file import DoorFile, write_door_file
from league.run.monitor.jsonl_sink import JsonlSink, decode_row
from league.run.monitor.spool import Spool, SpoolReader, segments
from league.store.checkpoints import CheckpointStore
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague, verified_state
from league.store.known_runs import known_runs, note_run
from league.store.lock import this_process
from league.store.run_folder import CLOCK_FILE, RunFolder, RunStatus
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from league.store.storage import Storage
from league.store.supervision import Supervision, read_supervision, write_supervision

OLD, NEW = b"old" * 50, b"new" * 70
LEAGUE = LeagueConfig(players=(PlayerConfig(role="main_agent"),))


@dataclass(frozen=True)
class Site:
    """One writer.

    Fields:
      prepare: makes what is there before, all of it acknowledged.
      write: the write under test.
      read: what a reader gets afterwards: "old", "new", or "found" where a torn write is refused by name.
      outcomes: those allowed after a fault; after a write that raised nothing it is "new".
      durable: whether it must survive a loss of power once it is acknowledged.
    """

    prepare: Callable[[Path], object]
    write: Callable[[Path, Storage], object]
    read: Callable[[Path], str]
    outcomes: tuple[str, ...] = ("old", "new")
    durable: bool = True


def _manifest(weights: bytes) -> SnapshotManifest:
    return SnapshotManifest(sha256_hex(weights), "p", "main_agent", None, 0, 0, "e", "h", {})


def _folder(path: Path, storage: Storage | None = None) -> RunFolder:
    return RunFolder(path, storage=storage)


def _read_config(path: Path) -> str:
    return _folder(path).read_config()


def _is_run(path: Path) -> str:
    try:
        assert RunFolder.open(path / "run").read_config() == "new"
    except MissingRun:
        return "old"
    return "new"


def _status(phase: str) -> RunStatus:
    return RunStatus(this_process(), phase, 0.0, 0.0, 7)


def _read_status(path: Path) -> str:
    try:
        status = _folder(path).read_status()
    except LeagueError:
        return "found"
    return "found" if status is None else status.phase


def _clock(seconds: float) -> bytes:
    return ClockFile(Spent(seconds=seconds)).encode()


def _read_clock(path: Path) -> str:
    try:
        seconds = ClockFile.decode(_folder(path).read_resume_file(CLOCK_FILE)).spent.seconds
    except (msgspec.DecodeError, FileNotFoundError):
        return "found"
    return {1.0: "old", 2.0: "new"}[seconds]


def _league(path: Path, storage: Storage | None = None) -> JournaledLeague:
    return JournaledLeague.open(path / "journal.db", at_least_seq=0, wall_time=lambda: 0.0, storage=storage)


def _found_league(path: Path, storage: Storage | None = None) -> JournaledLeague:
    league = JournaledLeague.create(path / "journal.db", wall_time=lambda: 0.0, storage=storage)
    try:
        league.execute(CreateLeague(0, 2, (0, 1), LEAGUE))
        league.commit()
    except BaseException:
        league.close()
        raise
    return league


def _commit(path: Path, storage: Storage) -> None:
    league = _league(path, storage)
    try:
        league.execute(StartRun())
        league.commit()
    finally:
        league.close()


def _read_journal(path: Path) -> str:
    league = _league(path)
    league.close()
    with JournalReader.open_readonly(path / "journal.db", events=EVENTS) as reader:
        assert digest(verified_state(reader)) == digest(league.state)
    return "new" if league.state.running else "old"


def _create_journal(path: Path, storage: Storage) -> None:
    if not (path / "journal.db").exists():
        _found_league(path, storage).close()
        return
    league = _league(path, storage)
    if league.state.config is None:
        league.execute(CreateLeague(0, 2, (0, 1), LEAGUE))
        league.commit()
    league.close()


def _read_new_journal(path: Path) -> str:
    if not (path / "journal.db").exists():
        return "old"
    league = _league(path)
    league.close()
    return "old" if league.state.config is None else "new"


def _save_state(path: Path, storage: Storage) -> None:
    league = _league(path, storage)
    try:
        league.save_state()
        league.note_files({"clock.json": "0" * 64})
    finally:
        league.close()


def _read_state(path: Path) -> str:
    _read_journal(path)
    league = _league(path)
    league.close()
    return "new" if league.noted_files else "old"


def _snapshots(path: Path, storage: Storage | None = None) -> LocalSnapshotStore:
    return LocalSnapshotStore(path / "snapshots", storage=storage)


def _read_snapshot(path: Path) -> str:
    store = _snapshots(path)
    store.sweep()
    assert store.get(sha256_hex(OLD))[0] == OLD
    try:
        assert store.get(sha256_hex(NEW))[0] == NEW
    except MissingSnapshot:
        return "old"
    except CorruptSnapshot:
        return "found"
    return "new"


def _read_removed(path: Path) -> str:
    store = _snapshots(path)
    store.sweep()
    try:
        assert store.get(sha256_hex(OLD))[0] == OLD
    except MissingSnapshot:
        return "new"
    return "old"


def _checkpoints(path: Path, storage: Storage | None = None) -> CheckpointStore:
    return CheckpointStore(path / "checkpoints", storage=storage)


def _read_checkpoint(path: Path) -> str:
    store = _checkpoints(path)
    store.sweep()
    assert store.get("p", sha256_hex(OLD)) == OLD
    try:
        assert store.get("p", sha256_hex(NEW)) == NEW
    except MissingSnapshot:
        return "old"
    except CorruptSnapshot:
        return "found"
    return "new"


def _take_over(path: Path, storage: Storage) -> None:
    other = CheckpointStore(path / "other")
    other.put("p", NEW)
    _checkpoints(path, storage).take_over("p", sha256_hex(NEW), other)


def _read_pruned(path: Path) -> str:
    store = _checkpoints(path)
    assert store.get("p", sha256_hex(NEW)) == NEW
    return "new" if store.digests("p") == [sha256_hex(NEW)] else "old"


def _two_checkpoints(path: Path) -> None:
    for payload in (OLD, NEW):
        _checkpoints(path).put("p", payload)


def _supervision(restarts: int) -> Supervision:
    return Supervision(this_process(), 0.0, restarts=restarts)


def _read_supervision(path: Path) -> str:
    record = read_supervision(_folder(path))
    return "found" if record is None else {1: "old", 2: "new"}[record.restarts]


def _door(url: str) -> DoorFile:
    return DoorFile(this_process(), "", url)


def _read_door(path: Path) -> str:
    folder = _folder(path)
    assert folder.door_path.stat().st_mode & 0o777 == 0o600
    try:
        return msgspec.json.decode(folder.door_path.read_bytes(), type=DoorFile).url
    except msgspec.DecodeError:
        return "found"


def _note(path: Path, storage: Storage) -> None:
    note_run(path / "run", storage=storage)


def _read_known(path: Path) -> str:
    return "new" if any(folder.path == path / "run" for folder in known_runs()) else "old"


def _sink(path: Path, storage: Storage) -> JsonlSink:
    return JsonlSink(path / "metrics.jsonl", storage=storage, clock=lambda: 0.0, warn=_raise, max_bytes=200)


def _raise(sentence: str) -> None:
    raise LeagueError(sentence)


def _rows(path: Path) -> None:
    for step in range(4):
        _sink(path, Storage()).log(step, {"x": 1.0})


def _read_rows(path: Path) -> str:
    lines = (path / "metrics.jsonl").read_bytes().split(b"\n")
    rows = [row for row in map(decode_row, lines) if row is not None]
    assert [row.step for row in rows] == sorted(row.step for row in rows)
    return "new" if rows and rows[-1].step == 4 else "old"


def _spool(path: Path, storage: Storage) -> Spool:
    return Spool(
        path / "spool.jsonl", storage=storage, clock=lambda: 0.0, warn=_raise, max_bytes=4_000, segment_bytes=40
    )


def _fill_spool(path: Path) -> None:
    for step in range(3):
        _spool(path, Storage()).log(step, {"x": 1.0})


def _read_spool(path: Path) -> str:
    reader, steps = SpoolReader(path / "spool.jsonl", storage=Storage()), []
    while rows := reader.rows():
        steps += [step for step, _, _ in rows]
    assert steps in ([0, 1, 2], [0, 1, 2, 4], [0, 1, 2, 4, 4]), "a row that is written again is there twice at most"
    return "new" if steps[3:] else "old"


def _upload(path: Path, storage: Storage) -> None:
    reader = SpoolReader(path / "spool.jsonl", storage=storage)
    while reader.rows():
        pass
    reader.keep_place()


def _read_place(path: Path) -> str:
    left = [step for step, _, _ in SpoolReader(path / "spool.jsonl", storage=Storage()).rows()]
    assert segments(path / "spool.jsonl")
    return "old" if left else "new"


def _begin_study(path: Path, storage: Storage) -> None:
    TrialFolder(path, {"arms": 2}, what="study", folders=("trials", "results"), storage=storage)


def _read_plan(path: Path) -> str:
    plan = path / PLAN_FILE
    assert not plan.exists() or (path / "results").is_dir()
    return "new" if plan.exists() and msgspec.json.decode(plan.read_bytes()) == {"arms": 2} else "old"


SITES: dict[str, Site] = {
    "config.yaml": Site(
        lambda path: _folder(path).write_config("old"),
        lambda path, storage: _folder(path, storage).write_config("new"),
        _read_config,
    ),
    "new run": Site(
        lambda path: None,
        lambda path, storage: RunFolder.create(path / "run", config_yaml="new", storage=storage),
        _is_run,
    ),
    "status.json": Site(
        lambda path: _folder(path).write_status(_status("old")),
        lambda path, storage: _folder(path, storage).write_status(_status("new")),
        _read_status,
        ("old", "new", "found"),
        durable=False,
    ),
    "clock.json": Site(
        lambda path: _folder(path).write_resume_file(CLOCK_FILE, _clock(1.0)),
        lambda path, storage: _folder(path, storage).write_resume_file(CLOCK_FILE, _clock(2.0)),
        _read_clock,
    ),
    "clock.json of the loop": Site(
        lambda path: _folder(path).write_resume_file(CLOCK_FILE, _clock(1.0)),
        lambda path, storage: _folder(path, storage).write_resume_file(CLOCK_FILE, _clock(2.0), durable=False),
        _read_clock,
        ("old", "new", "found"),
        durable=False,
    ),
    "new journal": Site(lambda path: None, _create_journal, _read_new_journal),
    "journal": Site(lambda path: _found_league(path).close(), _commit, _read_journal),
    "stored state and files noted": Site(lambda path: _found_league(path).close(), _save_state, _read_state),
    "snapshot": Site(
        lambda path: _snapshots(path).put(OLD, _manifest(OLD)),
        lambda path, storage: _snapshots(path, storage).put(NEW, _manifest(NEW)),
        _read_snapshot,
    ),
    "snapshot removed": Site(
        lambda path: _snapshots(path).put(OLD, _manifest(OLD)),
        lambda path, storage: _snapshots(path, storage).remove(sha256_hex(OLD)),
        _read_removed,
    ),
    "checkpoint": Site(
        lambda path: _checkpoints(path).put("p", OLD),
        lambda path, storage: _checkpoints(path, storage).put("p", NEW),
        _read_checkpoint,
    ),
    "checkpoint of another run": Site(lambda path: _checkpoints(path).put("p", OLD), _take_over, _read_checkpoint),
    "checkpoints pruned": Site(
        _two_checkpoints,
        lambda path, storage: _checkpoints(path, storage).prune("p", keep=(sha256_hex(NEW),)),
        _read_pruned,
    ),
    "supervisor.json": Site(
        lambda path: write_supervision(_folder(path), _supervision(1)),
        lambda path, storage: write_supervision(_folder(path, storage), _supervision(2)),
        _read_supervision,
        ("old", "new", "found"),
        durable=False,
    ),
    "control.json": Site(
        lambda path: write_door_file(_folder(path), _door("old")),
        lambda path, storage: write_door_file(_folder(path, storage), _door("new")),
        _read_door,
        ("old", "new", "found"),
        durable=False,
    ),
    "known runs": Site(
        lambda path: RunFolder.create(path / "run", config_yaml="new"), _note, _read_known, durable=False
    ),
    "metrics.jsonl": Site(
        _rows, lambda path, storage: _sink(path, storage).log(4, {"x": 1.0}), _read_rows, durable=False
    ),
    "spool": Site(
        _fill_spool,
        lambda path, storage: _spool(path, storage).log(4, {"x": 1.0}),
        _read_spool,
        durable=False,
    ),
    "place in the spool": Site(_fill_spool, _upload, _read_place, durable=False),
    "plan of a study": Site(lambda path: None, _begin_study, _read_plan),
}
