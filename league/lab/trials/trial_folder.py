"""The folder of an experiment with trials: its plan, which never changes, and the lock of the one process in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from league.errors import LeagueError, RunInUse
from league.store.lock import RunLock
from league.store.storage import Storage

PLAN_FILE = "plan.json"


class TrialFolder:
    """The folder of one experiment.

    Args:
      path: made where it is missing.
      plan: record of the experiment, kept there; one that lies there must be the same.
      what: "sweep" or the like, for messages and the name of the lock. folders: that are made in it.
    Raises:
      LeagueError: another experiment lies there.
    """

    def __init__(
        self,
        path: Path,
        plan: object,
        *,
        what: str,
        folders: tuple[str, ...],
        storage: Storage | None = None,
    ) -> None:
        self.path = path
        self._what = what
        storage = storage or Storage()
        for name in folders:
            storage.make_folder(path / name)
        file = path / PLAN_FILE
        if file.exists():
            _require_same(file, plan, what)
        else:
            storage.atomic_write_bytes(file, msgspec.json.encode(plan))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder.

        Raises:
          LeagueError: another process works on it.
        """
        lock = RunLock(self.path / f"{self._what}.lock")
        try:
            lock.acquire()
        except RunInUse as error:
            raise LeagueError(f"{self.path} is in use by another {self._what} (process {error.pid}).") from error
        try:
            yield
        finally:
            lock.release()


def _require_same(path: Path, plan: object, what: str) -> None:
    try:
        found = msgspec.to_builtins(msgspec.json.decode(path.read_bytes(), type=type(plan)))
    except msgspec.MsgspecError as error:
        raise LeagueError(f"{path} is no plan of a {what}: give another --dir.") from error
    asked = msgspec.to_builtins(plan)
    differ = [name for name in asked if found[name] != asked[name]]
    if differ:
        raise LeagueError(
            f"{path.parent} holds a {what} with another {' and '.join(differ)}: give another --dir, or the same again."
        )
