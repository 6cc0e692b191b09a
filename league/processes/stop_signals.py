"""The signals that ask a command to stop: Ctrl-C, TERM, and the loss of its terminal."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def stop_signals(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Gives the signals to `handle` for the body, and their handlers back after it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] == signal.SIG_IGN:  # whoever started it wants it to outlive its terminal
        del before[signal.SIGHUP]

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
