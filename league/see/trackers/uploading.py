"""The frame of an uploading process: its job from the standard input, its end with it, and its messages."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable


def say(kind: str, text: str) -> None:
    """One line to the sink, written at once as a whole; the sink need not be there any more."""
    try:
        sys.stdout.write(f"{kind} {' '.join(text.split())[:500]}\n")
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  no later print may fail either


def serve(work: Callable[[bytes, Callable[[float], threading.Event]], None]) -> int:
    """Serve one job: a line of the standard input.

    Args:
      work: called with the line, and with a function that begins to watch the standard input: given the seconds that
        are left once it has ended, it returns the event that is then set.
    Returns: the exit code.
    """
    os.nice(10)
    job = read_line(0)
    stop = threading.Event()

    def watched(deadline_s: float) -> threading.Event:
        threading.Thread(target=watch_lifeline, args=(stop, deadline_s), daemon=True).start()
        return stop

    try:
        work(job, watched)
    except Exception as error:  # process boundary: the text may quote a key, so only the kind of error is reported
        say("warning", f"the tracker failed ({type(error).__name__})")
        return 1
    return 0


def watch_lifeline(stop: threading.Event, deadline_s: float) -> None:
    """Set `stop` when standard input ends; end this process and its children if that does not help in time."""
    while os.read(0, 4096):
        pass
    stop.set()
    threading.Event().wait(deadline_s)
    os.killpg(0, signal.SIGKILL)


def read_line(descriptor: int) -> bytes:
    """One line, without reading a byte beyond it."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)
