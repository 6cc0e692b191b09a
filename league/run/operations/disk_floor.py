"""Pauses training while the disk of a run is nearly full, and takes it up again once there is space."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from league.core.state.state import LeagueState
from league.errors import LeagueError
from league.run.operations.operator import Done, Operator
from league.store.disk_space import disk_space

BY = "disk floor"
"""The author of these changes, for the journal."""

LOOK_EVERY_S = 2.0
HEADROOM = 1.25
"""Free space over the floor from which training continues, so that it does not pause at every file."""

USUAL_FLOOR_BYTES = 1 << 30
SMALL_DISK_FRACTION = 0.05
WRITTEN_PER_PLAYER = 8
"""Sizes of its weights that a player may write before the next look: a snapshot and a restart state, both twice."""


class DiskFloor:
    """Looks at the free space every few seconds.

    Args:
      path: run folder. operator: takes the requests to pause; its configuration has the floor.
      snapshot_bytes: size of the weights of one policy.
      say: tells the user one sentence.
      space: free and all bytes of the file system of a path. monotonic: seconds that never go back.

    Attributes:
      free_bytes, floor_bytes: as of the last look.
    """

    def __init__(
        self,
        path: Path,
        operator: Operator,
        *,
        snapshot_bytes: int,
        say: Callable[[str], object],
        space: Callable[[Path], tuple[int, int]] = disk_space,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._operator = operator
        self._snapshot_bytes = snapshot_bytes
        self._say = say
        self._space = space
        self._monotonic = monotonic
        self._due = -LOOK_EVERY_S
        self._asked: Future[Done] | None = None
        self.free_bytes, self.floor_bytes = 0, 0

    @property
    def is_low(self) -> bool:
        """True if less than the floor was free at the last look."""
        return self.free_bytes < self.floor_bytes

    def look(self, state: LeagueState) -> None:
        """Ask for a pause, or for its end, where it is time to look and one is due."""
        now = self._monotonic()
        if now < self._due or (self._asked is not None and not self._asked.done()):
            return
        self._due = now + LOOK_EVERY_S
        self._report_refusal()
        try:
            self.free_bytes, total = self._space(self._path)
        except OSError:  # a network file system that does not answer now says so at the next write
            return
        self.floor_bytes = self._floor(total, num_players=len(state.players))
        pause = state.training_pause
        if self.is_low and pause is None:
            reason = (
                f"{_gib(self.free_bytes)} are free on the disk of {self._path}, less than the floor of "
                f"{_gib(self.floor_bytes)} (retention.floor_gib)"
            )
            self._ask("pause", reason)
            self._say(f"Training is paused: {reason}. It continues once {_gib(self._enough)} are free.")
        elif pause is not None and pause.by == BY and self.free_bytes >= self._enough:
            self._ask("unpause", f"{_gib(self.free_bytes)} are free again")
            self._say(f"Training continues: {_gib(self.free_bytes)} are free again on the disk of {self._path}.")

    @property
    def _enough(self) -> float:
        return HEADROOM * self.floor_bytes

    def _floor(self, total: int, *, num_players: int) -> int:
        chosen = self._operator.config.retention.floor_gib
        if chosen != "auto":
            return round(chosen * 2**30)
        usual = min(USUAL_FLOOR_BYTES, int(SMALL_DISK_FRACTION * total))
        return max(usual, WRITTEN_PER_PLAYER * num_players * self._snapshot_bytes)

    def _ask(self, name: str, reason: str) -> None:
        self._asked = self._operator.submit(name, {"what": "training"}, by=BY, reason=reason)

    def _report_refusal(self) -> None:
        error = None if self._asked is None else self._asked.exception()
        self._asked = None
        if isinstance(error, LeagueError):
            self._say(f"The floor of the disk could not change the pause of training: {error}.")


def _gib(num_bytes: float) -> str:
    return f"{num_bytes / 2**30:.2f} GiB"
