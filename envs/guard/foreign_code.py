"""The one way into code of others: what it does to the process holds in its own calls and nowhere else.

Around every call the settings of the process are compared with what they were. What has changed is kept for the next
call of the same game, which may rely on it, and put back for us. A game that ends the process has failed as one that
raises, and a copy of this process that it forks and lets return ends here.
"""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from league.envs.guard.settings import SETTINGS, Setting, handler_of
from league.envs.guard.stand_ins import REAL_EXIT, EndOfProcess, StandIns, inside
from league.envs.guard.witness import witness

T = TypeVar("T")

stand_ins = StandIns()

_numbers = itertools.count()
_visits: dict[int, tuple[int, str, str, object]] = {}
_kept: dict[str, dict[str, tuple[Setting, Any]]] = {}
_liberties: dict[str, dict[str, None]] = {}
_interrupted = threading.Event()


def visit_of(thread: int) -> tuple[int, str, str, object] | None:
    """Number of the call of code of others that a thread is in, its env id, what it does, and the env or None."""
    return _visits.get(thread)


def liberties_of(owner: str) -> tuple[str, ...]:
    """The changes that the code of an owner has made to this process so far, such as "the current folder"."""
    return tuple(_liberties.get(owner, ()))


def as_failure(error: BaseException) -> Exception:
    """The exception that stands for what code of others raised.

    Raises:
      BaseException: it is Ctrl-C, which is meant for us.
    """
    found = _translated(error)
    if not isinstance(found, Exception):
        raise found
    return found


def _translated(error: BaseException) -> BaseException:
    """The exception that stands for an error; itself where that is none of the code's own."""
    end_copy(error)
    is_ours = threading.current_thread() is threading.main_thread() and _interrupted.is_set()
    if isinstance(error, SystemExit) or (isinstance(error, KeyboardInterrupt) and not is_ours):
        error = EndOfProcess(f"{type(error).__name__}({error}) would end this process")
    visit = _visits.get(threading.get_ident())
    if visit is not None and isinstance(error, EndOfProcess):
        _note(visit[1], "the end of the process")
    return error


def end_copy(error: BaseException | None = None) -> None:
    """End this process if it is a copy of ours, which code of others has forked and let return."""
    if inside.is_copy:
        code = error.code if isinstance(error, SystemExit) else error is not None
        REAL_EXIT(code if isinstance(code, int) else 1)


def _note(owner: str, liberty: str) -> None:
    _liberties.setdefault(owner, {})[liberty] = None


class foreign_code:  # noqa: N801 - used like a function
    """Context around code of others. What would end the process leaves it as `EndOfProcess`, but for Ctrl-C.

    Args:
      owner: whose settings are kept for the next call: the id of an env, or the name of a plug-in.
      what: "reset", "step", "close", ... for the message about a call that does not return.
      env: may be `league.envs.calls.Located`.
    """

    def __init__(self, owner: str, what: str, env: object = None) -> None:
        self._owner, self._what, self._env = owner, what, env

    def __enter__(self) -> None:
        inside.depth += 1
        if inside.depth > 1:
            return
        _visits[threading.get_ident()] = (next(_numbers), self._owner, self._what, self._env)
        inside.terminate = handler_of(signal.SIGTERM)
        witness.begin(self._owner, self._what)
        self._threads = threading.active_count()
        self._ours = [setting.read() for setting in SETTINGS]
        self._handler = self._heard_interrupt()
        stand_ins.put()
        for setting, value in _kept.get(self._owner, {}).values():
            setting.write(value)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        end_copy(error)
        if inside.depth > 1:
            inside.depth -= 1
            return
        failure = None if error is None else _translated(error)
        inside.depth = 0
        stand_ins.take_back()
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        self._put_back()
        _visits.pop(threading.get_ident(), None)
        witness.end()
        if failure is not None and failure is not error:
            raise failure from error

    def _put_back(self) -> None:
        """Put our settings back, and keep those of the owner."""
        kept = _kept.get(self._owner, {})
        for setting, ours in zip(SETTINGS, self._ours, strict=False):  # a setting may have been added meanwhile
            theirs = setting.read()
            if setting.differs(theirs, ours):
                setting.write(ours)
                if setting.name not in kept:
                    _note(self._owner, setting.name)
                kept = _kept.setdefault(self._owner, {})
                kept[setting.name] = (setting, theirs)
            elif setting.name in kept:
                del kept[setting.name]
        if threading.active_count() > self._threads:
            _note(self._owner, "helper threads")

    def _heard_interrupt(self) -> Any:
        """In the main thread: tell Ctrl-C from a KeyboardInterrupt of the code's own; returns the handler before."""
        if stand_ins.may_end or threading.current_thread() is not threading.main_thread():
            return None
        _interrupted.clear()
        handler = handler_of(signal.SIGINT)
        if handler is not signal.default_int_handler:
            return None
        signal.signal(signal.SIGINT, _interrupt)
        return handler


def _interrupt(number: int, frame: FrameType | None) -> None:
    _interrupted.set()
    raise KeyboardInterrupt


def call(owner: str, what: str, function: Callable[[], T], env: object = None) -> T:
    """The result of a function of others, called inside `foreign_code`."""
    with foreign_code(owner, what, env):
        return function()
