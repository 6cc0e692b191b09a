"""Records the env call that each thread is in, so that a call that hangs can be named.

Nothing is recorded per game: an env that steps its games one by one reports its own position.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs.guard.foreign_code import visit_of
from league.envs.protocol import BatchedEnv, Turn


class GivenUp(BaseException):
    """The call returned after all, in a thread that nobody waits for any more."""


@runtime_checkable
class Located(Protocol):
    """An env that steps its games one by one."""

    def whereabouts(self) -> tuple[str, int, int, int]:
        """("reset" or "step", game number, episode number, step number) in progress; callable from any thread."""
        ...


@runtime_checkable
class AsyncEnv(Protocol):
    """An env that steps in other processes, so that its caller can do something else meanwhile."""

    def step_async(self, actions: NDArray[np.generic]) -> None:
        """Begin `step`."""
        ...

    def step_wait(self) -> Turn:
        """The turn of the step that was begun. Raises as `step`."""
        ...


@dataclass(frozen=True)
class Call:
    """One call. number: counts all calls; what: "reset" or "step"; env: may be `Located`."""

    number: int
    env_id: str
    what: str
    env: object

    def place(self) -> tuple[object, ...]:
        """A value that stays equal as long as the call makes no progress."""
        return (self.number, self.what, *(self.env.whereabouts() if isinstance(self.env, Located) else ()))

    def text(self) -> str:
        """Describes the call, for a message that ends in "for 30 s"."""
        if not isinstance(self.env, Located):
            return f"{self.env_id} has been in {self.what}"
        what, game, episode, step = self.env.whereabouts()
        return f"game {game} of {self.env_id} (episode {episode}, step {step}) has been in {what}"


_numbers = itertools.count()
_going_on: dict[int, Call] = {}
_given_up: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""Threads by themselves, not by their numbers: a new thread may bear the number of one that has ended."""


class going_on:  # noqa: N801 - used like a function
    """Context in which an env is called. Raises GivenUp on exit if the thread was given up in the meantime."""

    def __init__(self, env_id: str, what: str, env: object = None) -> None:
        self._call = Call(next(_numbers), env_id, what, env)

    def __enter__(self) -> None:
        _going_on[threading.get_ident()] = self._call

    def __exit__(self, *error: object) -> None:
        _going_on.pop(threading.get_ident(), None)
        if _given_up and threading.current_thread() in _given_up:
            raise GivenUp


def reset(env: BatchedEnv, seed: int) -> Turn:
    """Calls `env.reset` and records the call while it runs."""
    with going_on(env.spec.env_id, "reset", env):
        return env.reset(seed)


def step(env: BatchedEnv, actions: NDArray[np.generic]) -> Turn:
    """Calls `env.step` and records the call while it runs."""
    with going_on(env.spec.env_id, "step", env):
        return env.step(actions)


def step_async(env: BatchedEnv, actions: NDArray[np.generic]) -> None:
    """Begins a step of an `AsyncEnv`. Records the call as `step` does."""
    assert isinstance(env, AsyncEnv)
    with going_on(env.spec.env_id, "step", env):
        env.step_async(actions)


def step_wait(env: BatchedEnv) -> Turn:
    """The turn of a step that was begun. Records the call as `step` does."""
    assert isinstance(env, AsyncEnv)
    with going_on(env.spec.env_id, "step", env):
        return env.step_wait()


def call_of(thread: int | None) -> Call | None:
    """The call that a thread is in, None if it is in none."""
    if thread is None:
        return None
    visit = visit_of(thread)
    return _going_on.get(thread) or (None if visit is None else Call(*visit))


def give_up(thread: threading.Thread) -> None:
    """Make a thread end as soon as its call returns, if it ever does."""
    _given_up.add(thread)


class Watch:
    """Measures the time that one thread spends at the same place of the same call."""

    def __init__(self) -> None:
        self._place: tuple[object, ...] | None = None
        self._since = 0.0

    def look(self, thread: int | None, *, now: float) -> tuple[float, str]:
        """Seconds so far and a description of the call; (0, "") if no env is being called.

        Args:
          now: monotonic seconds. Call this often: time before the first call is not counted.
        """
        call = call_of(thread)
        place = None if call is None else call.place()
        if call is None or place != self._place:
            self._place, self._since = place, now
            return 0.0, ""
        return now - self._since, call.text()
