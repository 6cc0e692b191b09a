"""Notes where the threads of a process spend processor time; Python imports it at the start of every process below.

A thread of its own looks at all stacks a hundred times a second. What a thread's clock has moved since the last look
belongs to what it is at now. It needs Python's lock to look, so it sees a thread where that lets go of it: after five
milliseconds of Python, or as a long call of a library begins or ends. Threads that Python does not know, such as those
of a matrix library, are one entry. The totals are in a file of the process's number, written again twice a second.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType

FOLDER = os.environ.get("LEAGUE_STACK_SAMPLES", "")
LOOK_S, WRITE_S = 0.01, 0.5
DEPTH = 40
"""Frames of a stack that are looked at, from the innermost outwards."""
OUTSIDE = "outside of Python"


class Sampler:
    """Totals of this process: stack, as "file:function" from the innermost outwards -> seconds."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self._clocks: dict[int, float] = {}
        self._written = 0.0
        self._own = threading.get_native_id()
        while True:
            time.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Give every thread's time since the last look to its stack."""
        frames = sys._current_frames()
        known = {thread.native_id: frames.get(thread.ident or 0) for thread in threading.enumerate()}
        known[os.getpid()] = frames.get(threading.main_thread().ident or 0)  # a forked thread has the number of before
        for entry in Path("/proc/self/task").iterdir():
            task = int(entry.name)
            spent = _clock(task)
            passed = spent - self._clocks.get(task, 0.0)
            self._clocks[task] = spent
            if passed > 0 and task != self._own:
                stack = _stack(known.get(task))
                self.totals[stack] = self.totals.get(stack, 0.0) + passed
        if time.monotonic() - self._written > WRITE_S:
            self.write()

    def write(self) -> None:
        """Replace the file of this process."""
        self._written = time.monotonic()
        path = Path(FOLDER, f"{os.getpid()}.json")
        (draft := path.with_suffix(".new")).write_text(json.dumps({"command": sys.orig_argv, "totals": self.totals}))
        draft.replace(path)


def _clock(task: int) -> float:
    """Seconds that a thread has run."""
    try:
        return int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _stack(frame: FrameType | None) -> str:
    found: list[str] = []
    while frame is not None and len(found) < DEPTH:
        found.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        frame = frame.f_back
    return "\n".join(found) or OUTSIDE


def start() -> None:
    """Begin to look at this process."""
    threading.Thread(target=Sampler, name="stack samples", daemon=True).start()


if FOLDER:
    start()
    os.register_at_fork(after_in_child=start)
