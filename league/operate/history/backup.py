"""`league backup`: a copy of a run, also of a live one, that is a run folder itself and replaced as a whole.

The copy is assembled beside its final place and takes it in one step. A backup that is cut off leaves the one before
as it was. Files that the one before holds already, named by the digests of their content, are shared with it. Nothing
is shared with the run itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from league.core.pbt.pbt import pinned_checkpoints
from league.core.state.events import EVENTS
from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, LeagueError, MissingSnapshot, StorageError
from league.json_report import JsonReport
from league.policies.own_code import CODE_FILE
from league.policies.trust import MARK_FILE
from league.run.resume_files import clock_at, files_to_note, hosts_at
from league.store.checkpoints import CheckpointStore
from league.store.journal import Journal
from league.store.journal_reader import JournalHead, JournalReader
from league.store.journaled_league import read_state
from league.store.run_folder import CLOCK_FILE, HOSTS_FILE, RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.store.staging import require_apart, staged_run
from league.store.storage import Storage, set_aside_path
from league.wording import counted

RECORD_FILE = "backup.json"
MAX_RECORD_BYTES = 1 << 16
MAX_COPIED_BYTES = 4 << 30
COPIED = ("metrics.jsonl", "exports.json", MARK_FILE, CODE_FILE)
"""Other files of a run that a backup holds. Logs, what waits for a tracker, and runs set aside stay where they are."""

MAX_ATTEMPTS = 5
"""Attempts at a moment of a live run whose files are all still there when they are copied."""


class BackupRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that marks a run folder as a backup: of which run, up to which event, made when (seconds since 1970)."""

    run: str
    event: int
    chain: str
    made_at: float


@dataclass
class BackupReport(JsonReport):
    """A backup as it was made.

    Fields:
      run, backup: folders. since: last event of the backup before, 0 for none.
      event, chain: the last event that it holds, and the chain hash after it.
      copied, copied_bytes: weights and restart states that were copied. shared: those taken from the backup before.
      left_out: files that the run has lost or that are damaged there, one sentence each.
      seconds: that it took.
    """

    run: str
    backup: str
    since: int = 0
    event: int = 0
    chain: str = ""
    copied: int = 0
    copied_bytes: int = 0
    shared: int = 0
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def json_extras(self) -> Mapping[str, object]:
        """`ok`: true where nothing is wrong."""
        return {"ok": not self.left_out}

    def text(self) -> str:
        return "\n".join(
            [
                f"{self.backup}: {self.run} up to event {self.event:,} ({self.event - self.since:,} new), "
                f"{self.copied} files copied ({self.copied_bytes / 1e6:.1f} MB), {self.shared} shared with the backup "
                f"before, in {self.seconds:.1f} s",
                *(f"  left out: {sentence}" for sentence in self.left_out),
                f"Check it with `league verify {self.backup}`; a copy of the folder is the run again.",
            ]
        )


def back_up(
    run: Path,
    destination: Path,
    *,
    progress: Callable[[str], object] = lambda text: None,
    wall_time: Callable[[], float] = time.time,
    storage: Storage | None = None,
) -> BackupReport:
    """Copy a run, or bring its backup up to date.

    Args:
      destination: a folder that is absent, empty, or an earlier backup of the same run.
      progress: shown a few words as it goes.
    Raises:
      LeagueError: one sentence for the user; a backup of before is as it was.
    """
    began = time.monotonic()
    origin, target = RunFolder.open(run), RunFolder(destination, storage=storage)
    require_apart(run, destination)
    _put_back(target.path)
    report = BackupReport(str(run), str(destination))
    with _earlier_backup(origin, target) as earlier:
        report.since = 0 if earlier is None else earlier.event
        config, replaces = origin.read_config(), earlier is not None
        with staged_run(target.path, config_yaml=config, storage=target.storage, replaces=replaces) as staged:
            held = target if replaces else None
            state = _copy_moment(origin, staged, held, report, progress=progress)
            _copy_files(origin, staged, state, report, now=wall_time())
            record = BackupRecord(str(origin.path), report.event, report.chain, wall_time())
            staged.storage.atomic_write_bytes(staged.path / RECORD_FILE, msgspec.json.encode(record))
    report.seconds = time.monotonic() - began
    return report


def _put_back(path: Path) -> None:
    """The backup of before again, where one was cut off between two renames."""
    aside = set_aside_path(path)
    if not path.exists() and (aside / RECORD_FILE).is_file():
        aside.rename(path)


@contextlib.contextmanager
def _earlier_backup(origin: RunFolder, target: RunFolder) -> Iterator[BackupRecord | None]:
    """The backup that is at the destination, locked; None where nothing is.

    Raises:
      LeagueError: something else is there, or what is there is no past of the run.
      RunInUse: somebody runs it.
    """
    if not target.path.exists() or (target.path.is_dir() and not any(target.path.iterdir())):
        yield None
        return
    try:
        content = target.storage.read_bytes(target.path / RECORD_FILE, max_bytes=MAX_RECORD_BYTES)
        record = msgspec.json.decode(content, type=BackupRecord)
    except (FileNotFoundError, NotADirectoryError, StorageError, msgspec.DecodeError) as error:
        raise LeagueError(f"{target.path} is there and is no backup of a run: choose another folder.") from error
    with target.lock:
        with JournalReader.open_readonly(target.journal_path, events=EVENTS) as journal:
            if journal.head() != JournalHead(record.event, record.chain):
                raise LeagueError(f"{target.path} was continued as a run of its own: choose another folder.")
        with JournalReader.open_readonly(origin.journal_path, events=EVENTS) as journal:
            if not _begins_with(journal, record):
                raise LeagueError(
                    f"{target.path} holds events that {origin.path} does not have, of another run or of before a "
                    "rewind: choose another folder."
                )
        yield record


def _begins_with(journal: JournalReader, record: BackupRecord) -> bool:
    return journal.head().seq >= record.event and journal.head_at(record.event).chain == record.chain


def _copy_moment(
    origin: RunFolder,
    staged: RunFolder,
    held: RunFolder | None,
    report: BackupReport,
    *,
    progress: Callable[[str], object],
) -> LeagueState:
    """Copy the journal and every file that it names; a live run may remove one meanwhile, and then it is done again."""
    for attempt in range(MAX_ATTEMPTS):
        progress("copying the journal")
        staged.storage.remove(staged.journal_path)
        with JournalReader.open_readonly(origin.journal_path, events=EVENTS) as journal:
            journal.copy_to(staged.journal_path)
        with JournalReader.open_readonly(staged.journal_path, events=EVENTS) as copy:
            head, state = copy.head(), read_state(copy)
            for _ in copy.replay(from_seq=report.since + 1):  # a damaged event must not take the place of a good one
                pass
        report.event, report.chain = head.seq, head.chain
        report.left_out = [
            *_copy_snapshots(origin, staged, held, state, report, progress=progress),
            *_copy_checkpoints(origin, staged, held, state, report),
        ]
        with JournalReader.open_readonly(origin.journal_path, events=EVENTS) as journal:
            is_news = journal.head() != head
        if not report.left_out or not is_news or attempt == MAX_ATTEMPTS - 1:
            break
    return state


def _copy_snapshots(
    origin: RunFolder,
    staged: RunFolder,
    held: RunFolder | None,
    state: LeagueState,
    report: BackupReport,
    *,
    progress: Callable[[str], object],
) -> Iterator[str]:
    """Take every snapshot that can be met, and what no event names, as a teacher; those that cannot be read."""
    theirs = LocalSnapshotStore(origin.snapshots_path)
    ours = LocalSnapshotStore(staged.snapshots_path, storage=staged.storage)
    before = None if held is None else LocalSnapshotStore(held.snapshots_path)
    wanted = {known.digest: name for name, known in state.snapshots.items() if state.is_present(name)}
    stored = set(theirs.digests())
    unnamed = stored - {known.digest for known in state.snapshots.values()}
    have = set(ours.digests())
    for number, digest in enumerate(sorted({*wanted, *unnamed} - have)):
        progress(f"{number:,} of {counted(len(wanted), 'snapshot')}")
        try:
            if before is not None and before.folder(digest).is_dir():
                ours.share(digest, before)
                report.shared += 1
            else:
                weights, manifest = theirs.get(digest)
                ours.put(weights, manifest)
                report.copied, report.copied_bytes = report.copied + 1, report.copied_bytes + len(weights)
        except (MissingSnapshot, CorruptSnapshot) as error:
            if digest in wanted:
                yield f"snapshot {wanted[digest]}: {error}"


def _copy_checkpoints(
    origin: RunFolder, staged: RunFolder, held: RunFolder | None, state: LeagueState, report: BackupReport
) -> Iterator[str]:
    """Take the restart states that the journal names; those that cannot be read."""
    theirs = CheckpointStore(origin.checkpoints_path)
    ours = CheckpointStore(staged.checkpoints_path, storage=staged.storage)
    before = None if held is None else CheckpointStore(held.checkpoints_path)
    for player, digest in _restart_states(state):
        if ours.path(player, digest).exists():
            continue
        try:
            if before is not None and before.path(player, digest).exists():
                ours.take_over(player, digest, before)
                report.shared += 1
            else:
                payload = theirs.get(player, digest)
                ours.put(player, payload)
                report.copied, report.copied_bytes = report.copied + 1, report.copied_bytes + len(payload)
        except (MissingSnapshot, CorruptSnapshot) as error:
            yield f"restart state of {player}: {error}"


def _restart_states(state: LeagueState) -> Iterable[tuple[str, str]]:
    named = {(name, player.checkpoint.digest) for name, player in state.players.items() if player.checkpoint}
    return sorted(named | set(pinned_checkpoints(state)))


def _copy_files(origin: RunFolder, staged: RunFolder, state: LeagueState, report: BackupReport, *, now: float) -> None:
    """Files beside the journal as they fit the event that the copy ends with."""
    if state.config_text:
        staged.write_config(state.config_text)
    for name in COPIED:
        with contextlib.suppress(FileNotFoundError):
            content = origin.storage.read_bytes(origin.path / name, max_bytes=MAX_COPIED_BYTES)
            staged.storage.atomic_write_bytes(staged.path / name, content)
    staged.write_resume_file(CLOCK_FILE, clock_at(origin, state).encode())
    hosts = hosts_at(origin, state)
    if hosts is not None:
        staged.write_resume_file(HOSTS_FILE, hosts)
    status = origin.read_status()
    if status is not None:
        seq = min(status.journal_seq, report.event)
        status = replace(status, journal_seq=seq, workers=(), steps_per_s=0.0)
        if origin.is_live(status):
            message = f"a backup, made while {origin.path} trained"
            status = replace(status, phase="stopped", heartbeat_at=now, message=message)
        staged.write_status(status)
    with Journal.open(staged.journal_path, events=EVENTS, storage=staged.storage) as journal:
        journal.note_files(files_to_note(staged))
