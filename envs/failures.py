"""Failures of single games: which game failed where, how often, and when it is given up.

A game that fails costs its unfinished episode. Three strikes quarantine it: it is not played any more. A strike is
forgotten after `FORGIVING_EPISODES` episodes that ended, so that a rare failure does not end a long run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from league.envs.protocol import EnvError

MAX_STRIKES = 3
FORGIVING_EPISODES = 100
MAX_IN_A_ROW = 3 * MAX_STRIKES
"""Failures without any call that succeeded in between, after which the env as a whole is taken to be broken."""

MAX_KEPT = 256
"""Most failures kept for the next report; all are counted."""


@dataclass(frozen=True)
class GameFailure:
    """One failure of one game.

    Fields:
      game: number of the game in its batch. seed: of its episode, as given to the game's `reset`.
      episode, step: counted from 0 since the batch was reset; step 0 is the reset.
      call: "reset" or "step".
      reason: one sentence without the place. traceback: of an exception, else empty.
      strikes: of this game so far. quarantined: it is not played any more.
    """

    env_id: str
    game: int
    seed: int
    episode: int
    step: int
    call: str
    reason: str
    traceback: str = ""
    strikes: int = 1
    quarantined: bool = False

    def text(self) -> str:
        """One sentence."""
        place = f"game {self.game}, episode {self.episode}, seed {self.seed}, step {self.step}"
        then = f"; after {self.strikes} failures it is not played any more" if self.quarantined else ""
        return f"{self.env_id}: {self.call} {self.reason} ({place}){then}"


@runtime_checkable
class FaultTolerant(Protocol):
    """An env that can lose the episode of one game and play on."""

    def tolerate_failures(self, count: FailureCount | None = None) -> None:
        """From now on a game that fails restarts, or is quarantined, where it raised an `EnvError` until now.

        The turn marks it in `aborted`. An `EnvError` says when no game is left.

        count: where to count; by default in one of its own.
        """
        ...

    def take_failures(self) -> tuple[GameFailure, ...]:
        """The failures since the last call, oldest first; at most `MAX_KEPT`."""
        ...


class FailureCount:
    """Counts the strikes of N games and keeps their failures for a report.

    Args:
      num_games: N.
      strikes: int64 [N], where to count; by default in an array of its own.
      may_lose_all: True if the games are a part of a batch, so that the last one's end is not the end of the env.
    """

    def __init__(self, num_games: int, *, strikes: memoryview | None = None, may_lose_all: bool = False) -> None:
        self._strikes = np.zeros(num_games, np.int64).data if strikes is None else strikes
        self._may_lose_all = may_lose_all
        self._ended = [0] * num_games
        self._in_a_row = 0
        self._kept: list[GameFailure] = []

    @property
    def quarantined(self) -> set[int]:
        """The games that are not played any more."""
        return {game for game, strikes in enumerate(self._strikes) if strikes >= MAX_STRIKES}

    def strike(self, game: int, failure: GameFailure) -> bool:
        """Count a failure; returns True if the game may be played again.

        Args:
          game: index of the game, whatever number the failure shows.
          failure: its `strikes` and `quarantined` are filled in here.
        Raises:
          EnvError: no game is left, or too many calls in a row failed.
        """
        self._in_a_row += 1
        self._strikes[game] += 1
        self._ended[game] = 0
        given_up = self._strikes[game] >= MAX_STRIKES
        counted = replace(failure, strikes=self._strikes[game], quarantined=given_up)
        if len(self._kept) < MAX_KEPT:
            self._kept.append(counted)
        if given_up and not self._may_lose_all and len(self.quarantined) == len(self._strikes):
            raise EnvError(f"{none_left(len(self._strikes))}. The last one: {counted.text()}")
        if self._in_a_row >= MAX_IN_A_ROW:
            raise EnvError(f"the last {MAX_IN_A_ROW} calls of the games all failed. The last one: {counted.text()}")
        return not given_up

    def succeeded(self) -> None:
        """A call of some game came back."""
        self._in_a_row = 0

    def ended(self, game: int) -> None:
        """An episode of the game ended."""
        if self._strikes[game]:
            self._ended[game] += 1
            if self._ended[game] >= FORGIVING_EPISODES:
                self._ended[game] = 0
                self._strikes[game] -= 1

    def take(self) -> tuple[GameFailure, ...]:
        """The failures since the last call."""
        taken, self._kept = tuple(self._kept), []
        return taken


def none_left(num_games: int) -> str:
    """A clause that says that every game is quarantined."""
    return f"all {num_games} games failed {MAX_STRIKES} times each and none is left to play"
