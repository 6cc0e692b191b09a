"""A run folder made beside its final place: a run assembled from another one appears whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from league.errors import LeagueError, RunExists, StorageError
from league.store.run_folder import RunFolder
from league.store.storage import TEMPORARY_PREFIX, Storage


@contextlib.contextmanager
def staged_run(path: Path, *, config_yaml: str, storage: Storage, replaces: bool = False) -> Iterator[RunFolder]:
    """A new, locked run folder under a temporary name; it gets the name `path` when the block has ended well.

    What an earlier attempt left under the temporary name is removed.

    Args:
      replaces: whether it takes the place of the folder at `path`, which is removed then.
    Raises:
      RunExists: something is at `path` that is not to be replaced.
      RunInUse: another process is just making the same.
      DiskFull, StorageError: nothing is at `path`; where it replaces a folder, the old or the new one is, whole.
    """
    final = path.absolute()
    if not replaces and final.exists() and not (final.is_dir() and not any(final.iterdir())):
        raise RunExists(f"{final} is there already and not empty: choose another folder.")
    run = RunFolder(staging_path(final), storage=storage)
    with _locked_folder(run):
        try:
            _clear(run)
            yield RunFolder.create(run.path, config_yaml=config_yaml, storage=storage)
            if replaces:
                storage.swap_folder(run.path, final)
            else:
                storage.publish_folder(run.path, final)
        except (LeagueError, KeyboardInterrupt):  # after anything worse the next attempt clears up
            is_published = not replaces and not run.path.exists()  # it has its name already where the last fsync failed
            with contextlib.suppress(LeagueError):
                storage.remove_folder(final if is_published else run.path)
            raise
        if replaces:
            storage.remove_folder(run.path)  # the replaced one; no error here may undo the swap


@contextlib.contextmanager
def _locked_folder(run: RunFolder) -> Iterator[None]:
    """The folder, made and locked; where it cannot be locked, none is left."""
    run.storage.make_folder(run.path)
    try:
        run.lock.acquire()
    except StorageError:
        with contextlib.suppress(LeagueError):
            run.storage.remove_folder(run.path)
        raise
    try:
        yield
    finally:
        run.lock.release()


def require_apart(run: Path, other: Path) -> None:
    """Refuse a copy of a run whose folder is the run's, lies in it, or holds it.

    Raises:
      LeagueError: it is so.
    """
    here, there = run.resolve(), other.resolve()
    if here == there:
        raise LeagueError(f"{other} is the run itself: choose another folder.")
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise LeagueError(f"{other} and {run} lie in one another: choose a folder outside of the run.")


def staging_path(path: Path) -> Path:
    """The temporary name."""
    return path.with_name(f"{TEMPORARY_PREFIX}{path.name}.partial")


def _clear(run: RunFolder) -> None:
    for left in sorted(run.path.iterdir()):
        if left.is_dir() and not left.is_symlink():
            run.storage.remove_folder(left)
        elif left.name != "run.lock":
            run.storage.remove(left)
