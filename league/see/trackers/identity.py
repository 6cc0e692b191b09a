"""The ids of a run at a tracker: the same after every resume, other ones after a fork and after a rewind."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import msgspec

from league.errors import StorageError
from league.store.storage import Storage

IDENTITY_FILE = "identity.json"
MAX_ID = 100
_MAX_BYTES = 4096
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._-]")


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of a run. A copy of the folder keeps it; a fork has a folder of its own and so another one."""

    run_id: str


def settled_identity(folder: Path, name: str, *, storage: Storage) -> Identity:
    """The identity kept in a folder; made at the first call.

    Args:
      folder: it is there. name: of the run; its id begins with it. Two runs of one name have different ids.
    Raises:
      StorageError: it can be neither read nor written.
    """
    path = folder / IDENTITY_FILE
    try:
        return msgspec.json.decode(storage.read_bytes(path, max_bytes=_MAX_BYTES), type=Identity)
    except (FileNotFoundError, msgspec.MsgspecError):
        made = Identity(f"{_NOT_ALLOWED.sub('-', name)[: MAX_ID - 7]}-{secrets.token_hex(3)}")
        storage.atomic_write_bytes(path, msgspec.json.encode(made))
        return made


def line_id(run_id: str, rewound: str) -> str:
    """The id of what follows a rewind. rewound: chain hash of the event that it set aside last; empty for none."""
    return f"{run_id}-{rewound[:6]}" if rewound else run_id


def player_id(run_id: str, player: str) -> str:
    """The id of a player's own run."""
    return f"{run_id}-{_NOT_ALLOWED.sub('-', player)}"[:128]


def lasting_identity(folder: Path, name: str, *, storage: Storage) -> Identity:
    """As `settled_identity`; where the disk is full, an id for this start alone."""
    try:
        return settled_identity(folder, name, storage=storage)
    except StorageError:
        return Identity(f"{_NOT_ALLOWED.sub('-', name)[: MAX_ID - 7]}-{secrets.token_hex(3)}")
