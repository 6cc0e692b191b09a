"""Signals that end a run in order."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from league.monitor.console import RunConsole
from league.run.daemon import Daemon


@contextlib.contextmanager
def stopped_by_signals(daemon: Daemon, console: RunConsole) -> Iterator[Callable[[], None]]:
    """First Ctrl-C, TERM or loss of the terminal drains and saves, the second leaves at once.

    Yields a function that takes the signals again, for after a library has set handlers of its own.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if daemon.stop_requested:
            os._exit(128 + number)
        daemon.stop_requested = True
        console.say("Stopping: games in hand are finished and everything is saved; once more to leave at once.")

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] == signal.SIG_IGN:  # whoever started it wants it to outlive its terminal
        del before[signal.SIGHUP]

    def take() -> None:
        for number in before:
            signal.signal(number, handle)

    take()
    try:
        yield take
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
