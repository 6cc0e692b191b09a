"""The folder of a rating pool: the paths of its files.

- journal-000001.db: events, one file after another; the highest number counts.
- policies/: weights, by their sha256.
- inbox/: folders of policies that are to join.
- refused/: those that could not.
- token: by which workers join, for this user alone.
- run.lock: held by the process that works on the pool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from league.errors import MissingRun

_JOURNAL = re.compile(r"journal-(\d{6})\.db")


@dataclass(frozen=True)
class PoolFolder:
    """The paths of a pool."""

    path: Path

    @property
    def policies(self) -> Path:
        """The store of weights."""
        return self.path / "policies"

    @property
    def inbox(self) -> Path:
        """Folders that are to join."""
        return self.path / "inbox"

    @property
    def refused(self) -> Path:
        """Folders that were set aside, each with a sentence in NAME.txt."""
        return self.path / "refused"

    @property
    def lock(self) -> Path:
        """Held by the process that works on the pool."""
        return self.path / "run.lock"

    @property
    def token(self) -> Path:
        """The token by which workers join."""
        return self.path / "token"

    def journal(self, generation: int) -> Path:
        """A journal file by its number."""
        return self.path / f"journal-{generation:06d}.db"

    def generations(self) -> list[int]:
        """Numbers of the journal files, ascending."""
        found = (_JOURNAL.fullmatch(path.name) for path in self.path.glob("journal-*.db"))
        return sorted(int(match[1]) for match in found if match is not None)

    def require(self) -> PoolFolder:
        """This folder itself.

        Raises:
          MissingRun: there is no pool.
        """
        if not self.generations():
            raise MissingRun(f"{self.path} is no rating pool: `league pool init {self.path} --game ID` makes one.")
        return self
