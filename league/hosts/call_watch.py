"""The watch over a command: says which call of a game the command is waiting for, so that no hang is silent."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

WARN_AFTER_S, LOOK_EVERY_S = 30.0, 1.0
"""Time after which a call that has not come back is spoken of, and between two looks."""


@contextlib.contextmanager
def watched_calls(
    say: Callable[[str], object], *, warn_after_s: float = WARN_AFTER_S, look_every_s: float = LOOK_EVERY_S
) -> Iterator[None]:
    """For the body, say of each call of a game in this thread that has not come back for so long what it is."""
    over = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(threading.get_ident(), over, say, warn_after_s, look_every_s), daemon=True, name="calls"
    )
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(
    thread: int, over: threading.Event, say: Callable[[str], object], warn_after_s: float, look_every_s: float
) -> None:
    while "league.envs.calls" not in sys.modules:  # a command without games must not wait for the import of numpy
        if over.wait(look_every_s):
            return
    from league.envs.calls import Watch

    watch, said = Watch(), ""
    while not over.wait(look_every_s):
        seconds, text = watch.look(thread, now=time.monotonic())
        if seconds < warn_after_s:
            said = ""
        elif not said:
            said = f"{text} for {seconds:.0f} s; Ctrl-C stops the command"
            say(said)
