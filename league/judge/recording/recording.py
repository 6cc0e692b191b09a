"""Where the games of a match are recorded: who plays, and what takes each batch of games."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from league.errors import LeagueError
from league.judge.recording.replay import Replay, SeatHolder
from league.judge.recording.replay_file import SUFFIX, write_replay

MAX_FILES = 10_000


@dataclass(frozen=True)
class Recording:
    """Recording of one match.

    Fields:
      contenders: one for each policy of the match, in its order.
      take: called with the games of each batch once they have ended.
      tags: of every replay.
    """

    contenders: tuple[SeatHolder, ...]
    take: Callable[[Replay], object]
    tags: Mapping[str, str] = field(default_factory=dict)


class ReplayFolder:
    """A folder of replay files, numbered in the order in which they came.

    Args:
      path: made with the first file; files that are there stay.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next = 0

    def add(self, replay: Replay) -> Path:
        """Write the next file; returns its path.

        Raises:
          LeagueError: the folder is full. StorageError: it cannot be written.
        """
        while self._next < MAX_FILES:
            path = self.path / f"game-{self._next:04d}{SUFFIX}"
            self._next += 1
            if not path.exists():
                return write_replay(path, replay)
        raise LeagueError(f"{self.path} holds {MAX_FILES} replays: give an empty folder.")
