"""Stand-ins for streams, arguments and the ends of a process while code of others runs in it."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class EndOfProcess(Exception):  # noqa: N818 - an event, which counts as an exception of the code that asked for it
    """Code of others asked for the end of this process. The text says how."""


class Inside(threading.local):
    """Of each thread: calls of code of others that it is in, and whether this is a copy of our process made there.

    terminate: the handler of SIGTERM before the outermost call. mask: the signal mask before a fork.
    """

    depth = 0
    is_copy = False
    terminate: Any = None
    mask: set[int] | None = None


inside = Inside()


def _before_fork() -> None:
    """A signal to the child waits until it can end it: in between it would meet the handler of this process."""
    is_due = inside.depth > 0 and callable(inside.terminate)
    inside.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}) if is_due else None


def _after_fork() -> None:
    if inside.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, inside.mask)


def _after_fork_in_child() -> None:
    """A process that a game forks ends by SIGTERM, and not by what we, or Ray in its workers, do then."""
    inside.is_copy = inside.depth > 0
    if inside.mask is not None and signal.getsignal(signal.SIGTERM) is inside.terminate:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)

REAL_EXIT = os._exit
_REAL_REGISTER, _REAL_START = atexit.register, threading.Thread.start
_REAL = {
    (home, name): getattr(home, name)
    for home, names in (
        (os, ("_exit", "abort", "kill", "killpg")),
        (signal, ("raise_signal",)),
        (atexit, ("register",)),
        (threading.Thread, ("start",)),
    )
    for name in names
}

AT_EXIT_S = 5.0
"""Longest wait for what others want done at the exit of the process."""

_exit_began: list[float] = []


class _Unclosed:
    """A stream that stays open when it is closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)

    def __enter__(self) -> _Unclosed:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def close(self) -> None:
        """Do nothing."""

    def detach(self) -> None:
        """Refuse: nothing could be written any more."""
        raise io.UnsupportedOperation("this stream belongs to the program in which the game runs")


def _refusing(name: str, real: Callable[..., Any], is_own_end: Callable[..., bool]) -> Callable[..., Any]:
    def refuse(*given: Any) -> Any:
        if inside.depth and not inside.is_copy and is_own_end(*given):
            raise EndOfProcess(f"{name}({', '.join(str(value) for value in given)}) would end this process")
        return real(*given)

    return refuse


def _targets_us(pid: int, number: int = 0) -> bool:
    return bool(number) and pid in (0, os.getpid())


def _targets_our_group(group: int, number: int = 0) -> bool:
    return bool(number) and group in (0, os.getpgrp())


_REFUSING = {
    (os, "_exit"): _refusing("os._exit", os._exit, lambda *_: True),
    (os, "abort"): _refusing("os.abort", os.abort, lambda *_: True),
    (os, "kill"): _refusing("os.kill", os.kill, _targets_us),
    (os, "killpg"): _refusing("os.killpg", os.killpg, _targets_our_group),
    (signal, "raise_signal"): _refusing("signal.raise_signal", signal.raise_signal, lambda *_: True),
}


class _AtExit:
    """A function of others for the exit of the process: it gets a moment, and what it raises is one line."""

    def __init__(self, function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._function, self._given, self._named = function, given, named

    def __eq__(self, other: object) -> bool:
        return self is other or self._function == other

    def __hash__(self) -> int:
        return hash(self._function)

    def __call__(self) -> None:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        if not _exit_began:
            _exit_began.append(time.monotonic())
        thread.join(max(_exit_began[0] + AT_EXIT_S - time.monotonic(), 0.0))

    def _run(self) -> None:
        try:
            self._function(*self._given, **self._named)
        except (Exception, SystemExit) as error:  # code of others: nothing comes after it
            name = getattr(self._function, "__qualname__", self._function)
            print(f"{name}, which was to run at exit, raised {type(error).__name__}: {error}", file=sys.stderr)


def _register(function: Callable[..., Any], *given: Any, **named: Any) -> Callable[..., Any]:
    if not inside.depth:
        return _REAL_REGISTER(function, *given, **named)
    _REAL_REGISTER(_AtExit(function, given, named))
    return function


def _start(thread: threading.Thread) -> None:
    if inside.depth and not thread.is_alive():
        thread._daemonic = True  # type: ignore[attr-defined]  # the setter refuses in a thread that has been started
    _REAL_START(thread)


def _end_helpers() -> None:
    """At the exit: end the processes that others have started by multiprocessing, which would be waited for."""
    if "multiprocessing" not in sys.modules:
        return
    from multiprocessing import active_children

    left = active_children()
    for child in left:
        child.kill()
    for child in left:
        child.join(AT_EXIT_S)


_STAND_INS: dict[tuple[Any, str], Callable[..., Any]] = {
    **_REFUSING,
    (atexit, "register"): _register,
    (threading.Thread, "start"): _start,
}


class StandIns:
    """The stand-ins that code of others finds in place of ours, from its first call in to its last call out.

    It reads an empty input, has no arguments, cannot close our output, and cannot end the process. `may_end`: it can,
    as in a process that was made for it alone.
    """

    def __init__(self) -> None:
        self.may_end = False
        self._lock = threading.Lock()
        self._count = 0
        self._ours: tuple[Any, ...] = ()
        self._theirs: tuple[Any, ...] = ()
        self._empty: Any = None

    def put(self) -> None:
        """One more call begins."""
        with self._lock:
            self._count += 1
            if self._count > 1:
                return
            if self._empty is None:
                atexit.register(_end_helpers)
            if self._empty is None or self._empty.closed:
                self._empty = open(os.devnull)  # noqa: SIM115, PTH123  kept for the life of the process
            ours = (sys.stdin, sys.stdout, sys.stderr, sys.argv)
            if len(self._ours) != len(ours) or any(
                own is not known for own, known in zip(ours, self._ours, strict=True)
            ):
                out, err = (None if stream is None else _Unclosed(stream) for stream in ours[1:3])
                self._theirs = (self._empty, out, err)
            self._ours = ours
            self._argv = list(sys.argv)
            sys.stdin, sys.stdout, sys.stderr = self._theirs[0], self._theirs[1], self._theirs[2]
            sys.argv = self._argv[:1]
            if not self.may_end:
                for (home, name), stand_in in _STAND_INS.items():
                    setattr(home, name, stand_in)

    def take_back(self) -> None:
        """A call has ended."""
        with self._lock:
            self._count -= 1
            if self._count:
                return
            sys.stdin, sys.stdout, sys.stderr, sys.argv = self._ours
            if not self.may_end:
                for (home, name), real in _REAL.items():
                    setattr(home, name, real)
