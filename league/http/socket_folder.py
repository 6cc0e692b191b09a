"""The folder for temporary files that hold sockets, whose paths have at most 107 bytes whatever TMPDIR says."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from league.errors import LeagueError

MAX_SOCKET_PATH = 107
"""Most bytes of the path of a unix socket on Linux."""

SHORT = ("/tmp", "/var/tmp", "/dev/shm")


def temporary_folders() -> tuple[str, ...]:
    """The folders that are tried, the user's own first; each may not be there."""
    return (tempfile.gettempdir(), *SHORT)


def folder_for_sockets(room_bytes: int) -> Path:
    """The first folder for temporary files that can be written to and whose path leaves room for that of a socket.

    Args:
      room_bytes: of the path below the folder.
    Raises:
      LeagueError: there is none.
    """
    longest = MAX_SOCKET_PATH - room_bytes
    folders = temporary_folders()
    for folder in folders:
        if len(os.fsencode(folder)) <= longest and os.access(folder, os.W_OK | os.X_OK):
            return Path(folder)
    raise LeagueError(
        f"The folder for temporary files {folders[0]} is too long for unix sockets, or cannot be written to: set TMPDIR"
        f" to one of at most {longest} letters."
    )
