"""Games in progress: the state of each by its session's id, bounded in number and forgotten when idle."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from league.deploy.serving.wire import State

ID_BYTES = 16


class SessionError(Exception):
    """A session cannot be used. status: of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class _Session:
    state: State
    used_at: float
    busy: bool = False


class Sessions:
    """The states of games, by session.

    Args:
      first_state: of a new game.
      max_sessions: sessions at once. idle_s: seconds without a request after which one is forgotten.
      clock: monotonic seconds.
    """

    def __init__(
        self, first_state: Callable[[], State], *, max_sessions: int, idle_s: float, clock: Callable[[], float]
    ) -> None:
        self._first_state = first_state
        self._max_sessions = max_sessions
        self.idle_s = idle_s
        self._clock = clock
        self._open: OrderedDict[str, _Session] = OrderedDict()  # the longest unused first

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> str:
        """The id of a new game.

        Raises:
          SessionError: as many are open as may be.
        """
        self._forget_idle()
        if len(self._open) >= self._max_sessions:
            raise SessionError(503, f"{self._max_sessions} sessions are open, which is the most: close some, or wait")
        name = secrets.token_urlsafe(ID_BYTES)
        self._open[name] = _Session(self._first_state(), self._clock())
        return name

    def restart(self, name: str) -> None:
        """Begin the next game in a session. Raises SessionError as `take`."""
        session = self._free(name)
        session.state = self._first_state()
        self._use(name, session)

    def close(self, name: str) -> None:
        """Forget a session. Raises SessionError: there is none of that name."""
        self._known(name)
        del self._open[name]

    def take(self, name: str) -> State:
        """The state for a decision; no other one may begin until `put` or `release`.

        Raises:
          SessionError: unknown, forgotten, or a decision of it is under way.
        """
        session = self._free(name)
        session.busy = True
        return session.state

    def put(self, name: str, state: State) -> None:
        """The state after a decision; a session that was closed meanwhile stays closed."""
        session = self._open.get(name)
        if session is not None:
            session.state = state
            self._use(name, session)

    def release(self, name: str) -> None:
        """Give a session back whose decision failed; its state is that of before."""
        session = self._open.get(name)
        if session is not None:
            self._use(name, session)

    def _use(self, name: str, session: _Session) -> None:
        session.busy, session.used_at = False, self._clock()
        self._open.move_to_end(name)

    def _free(self, name: str) -> _Session:
        session = self._known(name)
        if session.busy:
            raise SessionError(409, "a decision of this session is under way: one game decides one step at a time")
        return session

    def _known(self, name: str) -> _Session:
        self._forget_idle()
        session = self._open.get(name)
        if session is None:
            raise SessionError(404, "there is no such session: it was closed, or forgotten after its time without use")
        return session

    def _forget_idle(self) -> None:
        limit = self._clock() - self.idle_s
        while self._open:
            name, session = next(iter(self._open.items()))
            if session.busy or session.used_at > limit:
                return
            del self._open[name]
