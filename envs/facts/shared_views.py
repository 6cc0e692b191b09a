"""Tells visible chance from hidden information: whether all seats of a game in turns always see the same.

What one seat sees must then tell what every other one sees. Where something is hidden, a seat's view comes again while
another's differs: at the latest when something happened that only one of them was shown. Views are therefore counted
as evidence where chance, or something hidden, was just at work.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import Turn

MAX_POSITIONS = 3_000
"""Positions of single games that are looked at."""

ENOUGH_POSITIONS = 50
"""Positions after a surprise in which every seat saw what it had seen before, from which they all see the same."""


@runtime_checkable
class ShowsEverySeat(Protocol):
    """An env that can say what the seats see that are not to move."""

    def views(self, game: int) -> tuple[bytes, ...] | None:
        """Return each seat's view of a game now, empty for one that has left; None if the game does not say."""
        ...


class SharedViews:
    """Collects positions of games in turns: call `looked` and `decided` for every turn."""

    def __init__(self) -> None:
        self._whole: dict[tuple[int, int], int] = {}
        self._next: dict[tuple[int, int, bytes], int] = {}
        self._surprising: set[tuple[int, int, bytes]] = set()
        self._before: dict[int, tuple[int, int, bytes]] = {}
        self._now: dict[int, tuple[int, int]] = {}
        self._evidence, self._positions, self._differ = 0, 0, False

    @property
    def are_shared(self) -> bool:
        """True if every seat saw what all others saw, wherever something surprising had happened."""
        return not self._differ and self._evidence >= ENOUGH_POSITIONS

    def restart(self) -> None:
        """Begin with other games; what was seen stays."""
        self._before.clear()

    def looked(self, env: object, turn: Turn) -> None:
        """A turn, before it is answered."""
        self._now.clear()
        if self._differ or self._positions >= MAX_POSITIONS or not isinstance(env, ShowsEverySeat):
            return
        for game, seat in zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True):
            if turn.ended[game]:
                self._before.pop(game, None)
            views = env.views(game)
            if views is None or game in self._now:  # several seats act at once
                self._differ = True
                return
            self._now[game] = seat, self._note(self._before.pop(game, None), views)

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """The answers to the turn."""
        for slot, game in enumerate(turn.env_index.tolist()):
            if game in self._now:
                self._before[game] = (*self._now[game], np.asarray(actions[slot]).tobytes())

    def _note(self, before: tuple[int, int, bytes] | None, views: tuple[bytes, ...]) -> int:
        """Take in a position and the decision before it; returns the position's number."""
        self._positions += 1
        whole = hash(views)
        seen = [(seat, hash(view)) for seat, view in enumerate(views) if view]
        all_seen_before = all(one in self._whole for one in seen)
        self._differ = self._differ or any(self._whole.setdefault(one, whole) != whole for one in seen)
        if before is not None:
            if self._next.setdefault(before, whole) != whole:
                self._surprising.add(before)
            self._evidence += all_seen_before and before in self._surprising
        return whole
