"""The runs that a page shows: one run folder, or every run folder directly in a folder."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from league.errors import LeagueError, nearest
from league.judge.pools.folder import PoolFolder
from league.see.page.runs.background import Background
from league.see.page.runs.opened_run import OpenedRun
from league.store.run_folder import RunFolder

MAX_OPEN = 8
"""Runs that are kept open; the one opened first is closed for a further one."""
MAX_RUNS = 1_000
WORKERS = 2
SWEEP_FILE, OF_SWEEP = "study.journal", "~"
"""The file that makes a folder a sweep, and what stands between its name and the number of a trial."""


T = TypeVar("T")


class UnknownRun(LeagueError):  # noqa: N818
    """The page shows no run of that name."""


class Library:
    """The runs below one path, opened when they are asked for.

    Args:
      path: a run folder, or a folder that holds some. command: that serves it, for people.

    Fields:
      sweep_reports: computations on sweeps, by name.
    """

    def __init__(self, path: Path, *, command: str = "") -> None:
        self._path, self.command = path.absolute(), command or f"league serve {path}"
        self._lock = threading.Lock()
        self._open: dict[str, OpenedRun] = {}
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="compute")
        self.sweep_reports = Background(self._pool, ready=lambda: None)
        if not self._path.is_dir() or ((self._path / "journal.db").exists() and not self.is_of_one_run):
            RunFolder.open(self._path)  # says what is wrong with the path

    @property
    def is_of_one_run(self) -> bool:
        """True where the path is a run folder."""
        return (self._path / "config.yaml").is_file()

    def pools(self) -> dict[str, PoolFolder]:
        """Name -> rating pool, by name: the path itself, or those directly in it."""
        if PoolFolder(self._path).generations():
            return {self._path.name: PoolFolder(self._path)}
        found = sorted({path.parent for path in self._path.glob("*/journal-*.db")})[:MAX_RUNS]
        return {path.name: PoolFolder(path) for path in found}

    def sweeps(self) -> dict[str, Path]:
        """Name -> folder of a sweep, by name: the path itself, or those directly in it."""
        if (self._path / SWEEP_FILE).is_file():
            return {self._path.name: self._path}
        return {path.parent.name: path.parent for path in sorted(self._path.glob(f"*/{SWEEP_FILE}"))[:MAX_RUNS]}

    @property
    def home(self) -> Path:
        """The folder in which new runs are made."""
        return self._path.parent if self.is_of_one_run else self._path

    def folders(self) -> dict[str, RunFolder]:
        """Name -> run folder, by name."""
        if self.is_of_one_run:
            return {self._path.name: RunFolder(self._path)}
        found = sorted(path.parent for path in self._path.glob("*/config.yaml"))[:MAX_RUNS]
        return {path.name: RunFolder(path) for path in found if (path / "journal.db").is_file()}

    def run(self, name: str) -> OpenedRun:
        """The run of that name, open.

        Raises:
          UnknownRun: there is none. JournalError, StorageError: it cannot be read.
        """
        found = self._open.get(name)
        if found is not None:
            return found
        folder = self.folder(name)
        with self._lock:
            found = self._open.get(name)
            if found is None:
                found = OpenedRun(folder, name, pool=self._pool)
                found.start()
                self._open[name] = found
                if len(self._open) > MAX_OPEN:
                    self._open.pop(next(iter(self._open))).close()
        return found

    def folder(self, name: str) -> RunFolder:
        """The folder of the run of that name, or of trial SWEEP~NUMBER of a sweep.

        Raises:
          UnknownRun: there is none.
        """
        sweep, is_trial, number = name.partition(OF_SWEEP)
        if is_trial:
            return self._trial(sweep, number)
        return _known(name, self.folders(), "run")

    def _trial(self, name: str, number: str) -> RunFolder:
        path = self.sweep(name) / "trials" / number
        if not (number.isdecimal() and (path / "journal.db").is_file()):
            raise UnknownRun(f"the sweep {name!r} has no trial {number!r} with a run folder")
        return RunFolder(path)

    def sweep(self, name: str) -> Path:
        """The folder of the sweep of that name.

        Raises:
          UnknownRun: there is none.
        """
        return _known(name, self.sweeps(), "sweep")

    def pool(self, name: str) -> PoolFolder:
        """The rating pool of that name.

        Raises:
          UnknownRun: there is none.
        """
        return _known(name, self.pools(), "pool")

    def close_gone(self) -> None:
        """Close every open run whose folder is there no more."""
        with self._lock:
            for name in [name for name, run in self._open.items() if not run.folder.config_path.is_file()]:
                self._open.pop(name).close()

    def close(self) -> None:
        """Close every run."""
        with self._lock:
            for run in self._open.values():
                run.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _known(name: str, found: Mapping[str, T], what: str) -> T:
    """The entry of a name. Raises UnknownRun: nothing has."""
    if name not in found:
        raise UnknownRun(f"there is no {what} {name!r}{nearest(name, found)}")
    return found[name]
