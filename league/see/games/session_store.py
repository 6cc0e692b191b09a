"""The games of people in progress, each with its own lock: bounded in number, and closed when nobody plays them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from league.errors import LeagueError
from league.see.games.session import GameSession

MAX_SESSIONS = 16
IDLE_S = 1800.0
NOT_KEPT = "this game is no longer kept: start another one."


class UnknownGame(LeagueError):  # noqa: N818
    """No game of that number is in progress."""


@dataclass
class _Entry:
    """A game. close: what belongs to it. used_at: on the store's clock. is_closed: read and written under its lock."""

    session: GameSession
    close: ExitStack
    used_at: float
    is_closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class SessionStore:
    """Games in progress. clock: seconds that never go back."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._games: dict[str, _Entry] = {}

    def add(self, opened: AbstractContextManager[GameSession]) -> str:
        """Begin a game; returns its name. The one touched longest ago makes room where there is none."""
        with ExitStack() as stack:
            session = stack.enter_context(opened)
            entry = _Entry(session, stack.pop_all(), self._clock())
        name = secrets.token_urlsafe(9)
        with self._lock:
            idle = [each for each, game in self._games.items() if self._clock() - game.used_at > IDLE_S]
            oldest = sorted(self._games, key=lambda each: self._games[each].used_at)
            surplus = oldest[: max(0, len(self._games) - len(idle) - MAX_SESSIONS + 1)]
            gone = [self._games.pop(each) for each in dict.fromkeys((*idle, *surplus))]
            self._games[name] = entry
        for game in gone:
            with game.lock:
                game.is_closed = True
                game.close.close()
        return name

    @contextmanager
    def use(self, name: str) -> Iterator[GameSession]:
        """The game of that name, to one caller at a time.

        Raises:
          UnknownGame: there is none, or no longer.
        """
        with self._lock:
            entry = self._games.get(name)
            if entry is None:
                raise UnknownGame(NOT_KEPT)
            entry.used_at = self._clock()
        with entry.lock:
            if entry.is_closed:  # it made room for another while this caller waited
                raise UnknownGame(NOT_KEPT)
            yield entry.session
