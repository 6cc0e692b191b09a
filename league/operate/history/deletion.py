"""`league delete`: a run folder removed, after its sentence says what that frees and what goes with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from league.json_report import JsonReport
from league.see.reports.status.run_size import BLOCK_BYTES
from league.store.known_runs import forget_run
from league.store.run_folder import RunFolder
from league.store.storage import TEMPORARY_PREFIX, Storage
from league.wording import counted, size_text


@dataclass(frozen=True)
class DeletionReport(JsonReport):
    """The folder of a run that goes.

    Fields:
      run: its folder. events, snapshots: of its journal. files: how many. freed_bytes: on the disk.
      shared_bytes: of files that another run holds too, as a fork does: they are freed with the last of these.
      done: whether it is gone.
    """

    run: str
    events: int
    snapshots: int
    files: int
    freed_bytes: int
    shared_bytes: int
    done: bool = False

    def json_extras(self) -> Mapping[str, object]:
        """`words`: the sentence of `text` without its full stop."""
        return {"words": self.words}

    @property
    def words(self) -> str:
        """The end of a sentence that begins with the removal."""
        kept = f"; {size_text(self.shared_bytes)} stay with runs that share them" if self.shared_bytes else ""
        what = f"{counted(self.events, 'event')}, {counted(self.snapshots, 'snapshot')}, {counted(self.files, 'file')}"
        return f"{self.run} for good: {what}, {size_text(self.freed_bytes)}{kept}"

    def text(self) -> str:
        return f"{'removed' if self.done else 'would remove'} {self.words}"


def plan_deletion(run: Path) -> DeletionReport:
    """The report of a deletion; nothing is done.

    Raises:
      MissingRun: it is no run folder. RunInUse: somebody works on it.
    """
    folder = RunFolder.open(run)
    with folder.supervisor_lock, folder.lock:
        return _report(folder)


def delete_run(run: Path, *, storage: Storage | None = None) -> DeletionReport:
    """Remove a run folder for good: it loses its name first, so that half a run is never taken for a run.

    Raises:
      MissingRun: it is no run folder. RunInUse: somebody works on it. StorageError: some of it cannot be removed.
    """
    folder = RunFolder.open(run, storage=storage)
    path = folder.path.absolute()
    going = path.with_name(f"{TEMPORARY_PREFIX}deleted-{path.name}")
    folder.storage.remove_folder(going)  # of a deletion that was cut off, of an earlier run of this name
    with folder.supervisor_lock, folder.lock:
        report = _report(folder)
        folder.storage.publish_folder(path, going)
    forget_run(path, storage=folder.storage)
    folder.storage.remove_folder(going)
    return replace(report, done=True)


def _report(folder: RunFolder) -> DeletionReport:
    files = freed = shared = 0
    for parent, _, names in os.walk(folder.path):
        for name in names:
            found = (Path(parent) / name).lstat()
            files += 1
            if found.st_nlink > 1:
                shared += BLOCK_BYTES * found.st_blocks
            else:
                freed += BLOCK_BYTES * found.st_blocks
    status = folder.account().status
    return DeletionReport(str(folder.path), status.journal_seq, status.snapshots, files, freed, shared)
