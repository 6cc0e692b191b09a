"""The signals that ask a command to stop: Ctrl-C, TERM, and the loss of its terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_ours: set[int] = set()
"""The signals that some `stop_signals` has at the moment."""


class _Mask(threading.local):
    """The signal mask of a thread that forks, as it was before."""

    before: set[int] | None = None


_mask = _Mask()


def _before_fork() -> None:
    """A signal to the child waits until it can end it: in between it would meet our handler."""
    _mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, _ours) if _ours else None


def _after_fork() -> None:
    if _mask.before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _mask.before)


def _after_fork_in_child() -> None:
    """A child made by fork, as by a game's multiprocessing, ends by the signals that end any process.

    A Ctrl-C that came as it was forked ends it too: an exception raised here would go unheard.
    """
    for number in _ours:
        signal.signal(number, signal.SIG_DFL)
    _after_fork()
    if signal.SIGINT in _ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _ours.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


@contextlib.contextmanager
def stop_signals(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Gives the signals to `handle` for the body, and their handlers back after it."""
    held = frozenset(_ours)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] == signal.SIG_IGN:  # whoever started it wants it to outlive its terminal
        del before[signal.SIGHUP]

    for number in before:
        signal.signal(number, handle)
    _ours.update(before)
    try:
        yield
    finally:
        _ours.intersection_update(held)
        for number, handler in before.items():
            signal.signal(number, handler)
