"""The replay files of a folder as a list: what each game is, without playing it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from league.errors import LeagueError
from league.judge.recording.replay import GameOutcome, Replay, SeatHolder
from league.judge.recording.replay_file import SUFFIX, read_replay

MAX_FILES = 400
"""Files listed, the newest."""
MAX_GAMES_LISTED = 50
"""Games listed of one file."""


class ReplayRow(msgspec.Struct, frozen=True):
    """One game of a file.

    Fields:
      file: its name. game: index of the game in it.
      written_at: of the file, seconds since 1970.
      seats: [S] who held them. returns: [S].
      steps: of the game. tags: of the file.
    """

    file: str
    game: int
    written_at: float
    env: str
    seats: tuple[SeatHolder, ...]
    returns: tuple[float, ...]
    steps: int
    truncated: bool
    tags: dict[str, str]


class ReplayList:
    """The games in a folder; a file that has not changed is read once.

    Args:
      folder: it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[tuple[str, float], tuple[ReplayRow, ...]] = {}
        self.damaged: tuple[str, ...] = ()

    def rows(self) -> tuple[ReplayRow, ...]:
        """The games, those of the newest file first; files that cannot be read are named in `damaged`."""
        known, damaged = {}, []
        for name, (path, written_at) in self._files().items():
            try:
                rows = self._known.get((name, written_at)) or tuple(rows_of(read_replay(path), name, written_at))
            except LeagueError as error:
                damaged.append(str(error))
                continue
            known[name, written_at] = rows
        self._known, self.damaged = known, tuple(damaged)
        return tuple(row for rows in known.values() for row in rows)

    def read(self, name: str) -> Replay:
        """The replay in a file of the folder, by its name.

        Raises:
          LeagueError: there is none of that name, or it cannot be read.
        """
        files = self._files()
        if name not in files:
            raise LeagueError(f"there is no replay {name[:80]!r} in {self.folder}.")
        return read_replay(files[name][0])

    def _files(self) -> dict[str, tuple[Path, float]]:
        """Name -> path and time of writing, the newest first."""
        found = []
        if self.folder.is_dir():
            for path in self.folder.glob(f"*{SUFFIX}"):
                if path.is_file() and not path.is_symlink():
                    found.append((path.stat().st_mtime, path.name, path))
        return {name: (path, written_at) for written_at, name, path in sorted(found, reverse=True)[:MAX_FILES]}


def rows_of(replay: Replay, file: str, written_at: float) -> list[ReplayRow]:
    """The games of one file that were played to their end."""
    games: list[tuple[int, GameOutcome]] = [(n, game) for n, game in enumerate(replay.games) if not game.aborted]
    return [
        ReplayRow(
            file,
            number,
            written_at,
            replay.env.id,
            replay.seats,
            game.returns,
            game.steps - game.start,
            game.truncated,
            replay.tags,
        )
        for number, game in games[:MAX_GAMES_LISTED]
    ]
