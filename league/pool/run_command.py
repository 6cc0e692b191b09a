"""Works on a pool for `league pool run`, until a time is over or a signal asks."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from league.monitor.progress import ProgressLine
from league.pool.folder import PoolFolder
from league.pool.pool import open_pool
from league.pool.run import run_here


def run_pool(path: Path, *, seconds: float | None, trust: bool) -> str:
    """Play batches; returns a sentence for the end.

    Args:
      seconds: None until a signal.
    """
    line = ProgressLine(sys.stderr)
    end = None if seconds is None else time.monotonic() + seconds
    with open_pool(PoolFolder(path), trust=trust, say=_say) as pool, stopped_by_signals() as stop:
        games = run_here(
            pool,
            still=lambda: not stop.is_set() and (end is None or time.monotonic() < end),
            source=path,
            idle=stop.wait,
            progress=lambda count: line.show(f"{count:,} games"),
        )
    line.close()
    return f"{games:,} games were counted; `league pool list {path}` shows the ratings."


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, TERM or loss of the terminal sets; the second leaves at once."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] == signal.SIG_IGN:  # whoever started it wants it to outlive its terminal
        del before[signal.SIGHUP]
    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
