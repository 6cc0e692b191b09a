"""The runs of this user on this machine: a small file each, so that `league ps` finds them wherever they lie.

The files are a convenience and never the truth: a run folder that moved or went away is left out.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import socket
from pathlib import Path

from league.errors import StorageError
from league.store.run_folder import RunFolder
from league.store.storage import Storage

MAX_PATH_BYTES = 1 << 13
_SUFFIX = ".path"


def state_folder() -> Path:
    """The folder of this user's own notes, $XDG_STATE_HOME/league or ~/.local/state/league."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (Path(home) if home else Path("~/.local/state").expanduser()) / "league"


def this_user() -> str:
    """The user of this process and its host, for the journal."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        name = "unknown"
    return f"{name}@{socket.gethostname()}"


def note_run(path: Path, *, storage: Storage | None = None) -> None:
    """Remember a run folder. A home that cannot be written to is no reason not to train: nothing is noted then."""
    path = path.absolute()
    storage = storage or Storage()
    with contextlib.suppress(StorageError):
        storage.make_folder(_folder())
        storage.atomic_write_bytes(_file_of(path), os.fsencode(path), durable=False)


def forget_run(path: Path, *, storage: Storage) -> None:
    """Forget a run folder that is gone."""
    with contextlib.suppress(StorageError):
        storage.remove(_file_of(path.absolute()))


def known_runs() -> list[RunFolder]:
    """The run folders that were noted and are still there, by path."""
    found = []
    for file in sorted(_folder().glob(f"*{_SUFFIX}")):
        try:
            path = Path(os.fsdecode(Storage().read_bytes(file, max_bytes=MAX_PATH_BYTES)))
        except (OSError, StorageError):
            continue
        folder = RunFolder(path)
        if folder.config_path.is_file() and _file_of(path) == file:
            found.append(folder)
    return sorted(found, key=lambda folder: folder.path)


def _folder() -> Path:
    return state_folder() / "runs"


def _file_of(path: Path) -> Path:
    return _folder() / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}{_SUFFIX}"
