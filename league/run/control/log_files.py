"""The log files of a run, and following one of them as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from league.errors import LeagueError, nearest
from league.store.run_folder import RunFolder

CONSOLE, DAEMON = "console", "daemon"
LOOK_EVERY_S = 0.2
TAIL_BYTES = 1 << 20


def log_names(folder: RunFolder) -> list[str]:
    """Names of the logs of a run: "console" of `league up`, "daemon", and one for each host."""
    return sorted(path.stem for path in folder.logs_path.glob("*.log"))


def log_path(folder: RunFolder, name: str | None) -> Path:
    """The log of that name; by default the console's, or the daemon's for a run that a terminal started.

    Raises:
      LeagueError: there is no such log; names those that are there.
    """
    known = log_names(folder)
    if not known:
        raise LeagueError(f"{folder.path} has no logs yet.")
    chosen = name or (CONSOLE if CONSOLE in known else DAEMON)
    if chosen not in known:
        raise LeagueError(f"{folder.path} has no log {chosen!r}; it has {', '.join(known)}{nearest(chosen, known)}")
    return folder.logs_path / f"{chosen}.log"


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log, at most `count` and those of its last MiB."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - TAIL_BYTES, 0))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-count:] if count > 0 else []


def following(path: Path, *, goes_on: Callable[[], bool], sleep: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Follows a log: the text appended to it, piece by piece, until `goes_on` is false and nothing is left.

    A log that is emptied or replaced by a new file is read from its start.
    """
    place, node = path.stat().st_size, path.stat().st_ino
    while True:
        last = not goes_on()
        try:
            stat = path.stat()
            if stat.st_ino != node or stat.st_size < place:
                place, node = 0, stat.st_ino
            if stat.st_size > place:
                with path.open("rb") as file:
                    file.seek(place)
                    piece = file.read(TAIL_BYTES)
                place += len(piece)
                yield piece.decode(errors="replace")
                continue
        except FileNotFoundError:  # between the two steps of a rotation
            place = 0
        if last:
            return
        sleep(LOOK_EVERY_S)
