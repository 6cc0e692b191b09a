"""Signals that end a run in order."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from types import FrameType

from league.monitor.console import RunConsole
from league.run.daemon import Daemon
from league.stop_signals import stop_signals


@contextlib.contextmanager
def stopped_by_signals(daemon: Daemon, console: RunConsole) -> Iterator[Callable[[], None]]:
    """First Ctrl-C, TERM or loss of the terminal drains and saves, the second leaves at once.

    Yields a function that takes the signals again, see `stop_signals`.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if daemon.stop_requested:
            os._exit(128 + number)
        daemon.stop_requested = True
        console.say("Stopping: games in hand are finished and everything is saved; once more to leave at once.")

    with stop_signals(handle) as take:
        yield take
