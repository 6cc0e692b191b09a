"""RUN/control.json: where the control door of a live run is. Only the run's user may read it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import msgspec

from league.errors import LeagueError, StorageError
from league.http.socket_folder import folder_for_sockets
from league.store.lock import Holder, is_holding, this_process
from league.store.run_folder import RunFolder

MAX_BYTES = 1 << 14
MAX_SOCKET_PATH = 100
"""Bytes of a unix socket's path; the kernel's limit is 108."""
PRIVATE_BYTES = len("/league-4294967295/") + 32 + len(".sock")
"""Of a path below the temporary folder, at most."""


class DoorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The control door of a live run.

    Fields:
      daemon: the process behind it. socket: path of its unix socket.
      url: of its TCP address, empty where it has none; the tokens for it lie in RUN/tokens.
    """

    daemon: Holder
    socket: str
    url: str = ""


class NoDoor(LeagueError):  # noqa: N818
    """The run has no control door that can be reached from here."""


def new_door_file(folder: RunFolder, *, url: str) -> DoorFile:
    """The file of a new door."""
    return DoorFile(this_process(folder.path), str(socket_path(folder)), url)


def write_door_file(folder: RunFolder, door: DoorFile) -> None:
    """Write the file with mode 0600.

    Raises:
      StorageError: it cannot be written.
    """
    folder.storage.atomic_write_bytes(folder.door_path, msgspec.json.encode(door), durable=False, private=True)


def read_door_file(folder: RunFolder) -> DoorFile:
    """The door of a live run.

    Raises:
      NoDoor: the run is not live, has no door, or it belongs to another user.
    """
    name = folder.path
    try:
        payload = folder.storage.read_bytes(folder.door_path, max_bytes=MAX_BYTES)
        door = msgspec.json.decode(payload, type=DoorFile)
    except FileNotFoundError as error:
        raise NoDoor(f"{name} is not running, or has no control door: `league up {name}` starts it.") from error
    except (StorageError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoDoor(f"the control door of {name} cannot be read ({error}): is the run another user's?") from error
    if not is_holding(door.daemon, folder.path):
        raise NoDoor(f"{name} is not running: `league up {name}` starts it, `league resume {name} -s ...` changes it.")
    return door


def socket_path(folder: RunFolder) -> Path:
    """The path of a run's unix socket: in its folder, or below the temporary folder where that path is too long.

    Raises:
      StorageError: the folder below the temporary one belongs to somebody else.
    """
    path = folder.path / "control.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        return path
    private = folder_for_sockets(PRIVATE_BYTES) / f"league-{os.getuid()}"
    private.mkdir(mode=0o700, exist_ok=True)
    found = private.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700 or not stat.S_ISDIR(found.st_mode):
        raise StorageError(f"{private} is not a private folder of this user: remove it, it is made again.")
    return private / f"{hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:32]}.sock"
