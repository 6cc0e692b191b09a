"""Which call of an env is going on in which thread, so that one that does not come back can be named.

Nothing is noted per game: an env that steps its games one by one says itself where it is.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from envs.protocol import BatchedEnv, Turn


class GivenUp(BaseException):
    """The call came back after all, to a thread that nobody waits for any more."""


@runtime_checkable
class Located(Protocol):
    """An env that steps its games one by one."""

    def whereabouts(self) -> tuple[str, int, int, int]:
        """("reset" or "step", number of the game, of its episode, of its step) that it is at, from any thread."""
        ...


@dataclass(frozen=True)
class Call:
    """One call. number: of all calls, in their order; what: "reset" or "step"; env: which may be `Located`."""

    number: int
    env_id: str
    what: str
    env: object

    def place(self) -> tuple[object, ...]:
        """Equal as long as nothing moves."""
        return (self.number, *(self.env.whereabouts() if isinstance(self.env, Located) else ()))

    def text(self) -> str:
        """What is going on, for "... for 30 s"."""
        if not isinstance(self.env, Located):
            return f"{self.env_id} has been in {self.what}"
        what, game, episode, step = self.env.whereabouts()
        return f"game {game} of {self.env_id} (episode {episode}, step {step}) has been in {what}"


_numbers = itertools.count()
_going_on: dict[int, Call] = {}
_given_up: set[int] = set()


class going_on:  # noqa: N801 - used like a function
    """Context in which an env is called. Raises GivenUp at its end where the thread was given up meanwhile."""

    def __init__(self, env_id: str, what: str, env: object = None) -> None:
        self._call = Call(next(_numbers), env_id, what, env)

    def __enter__(self) -> None:
        _going_on[threading.get_ident()] = self._call

    def __exit__(self, *error: object) -> None:
        thread = threading.get_ident()
        _going_on.pop(thread, None)
        if thread in _given_up:
            _given_up.discard(thread)
            raise GivenUp


def reset(env: BatchedEnv, seed: int) -> Turn:
    """`env.reset`, noted as going on."""
    with going_on(env.spec.env_id, "reset", env):
        return env.reset(seed)


def step(env: BatchedEnv, actions: NDArray[np.generic]) -> Turn:
    """`env.step`, noted as going on."""
    with going_on(env.spec.env_id, "step", env):
        return env.step(actions)


def call_of(thread: int | None) -> Call | None:
    """What a thread is calling now."""
    return None if thread is None else _going_on.get(thread)


def give_up(thread: int) -> None:
    """Let a thread end as soon as its call comes back, if it ever does."""
    _given_up.add(thread)


class Watch:
    """How long one thread has been at the same place of the same call."""

    def __init__(self) -> None:
        self._place: tuple[object, ...] | None = None
        self._since = 0.0

    def look(self, thread: int | None, *, now: float) -> tuple[float, str]:
        """Seconds so far, and what is going on; (0, "") where no env is being called.

        Args:
          now: seconds that never go back; look often, time before the first look is not seen.
        """
        call = call_of(thread)
        place = None if call is None else call.place()
        if call is None or place != self._place:
            self._place, self._since = place, now
            return 0.0, ""
        return now - self._since, call.text()
