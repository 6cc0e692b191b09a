"""Notes where the threads of a process spend processor time; Python imports it at the start of every process below.

A thread of its own looks at all stacks a hundred times a second. What a thread's clock has moved since the last look
belongs to what it is at now. It needs Python's lock to look, so it sees a thread where that lets go of it: after five
milliseconds of Python, or as a long call of a library begins or ends. Threads that Python does not know, such as those
of a matrix library, are one entry. The totals are in a file of the process's number, written again twice a second.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import threading
import time
from pathlib import Path

FOLDER = os.environ.get("LEAGUE_STACK_SAMPLES", "")
LOOK_S, WRITE_S = 0.01, 0.5
OUTSIDE = "outside of Python"
MAX_BYTES = 1 << 20
FRAME = re.compile(r'File "(.*)", line \d+ in (.*)')
OF_THREAD = 6
"""Low bits of Linux's number of a thread's clock; the others are the thread's number, negated."""


class Sampler:
    """Totals of this process: stack, as "file:function" from the innermost outwards -> seconds."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self._clocks: dict[int, float] = {}
        self._outside = 0.0
        self._file = os.memfd_create("stacks")
        self._written = 0.0
        while True:
            time.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Give every thread's time since the last look to its stack, and the rest of the process's to `OUTSIDE`."""
        threads = threading.enumerate()
        stacks, outside = self._stacks(), time.process_time()
        for thread in threads:
            # A forked main thread still has the number of the one before.
            task = os.getpid() if thread is threading.main_thread() else thread.native_id or 0
            spent = _clock(task)
            outside -= spent
            if thread is not threading.current_thread():
                self._add(stacks.get(thread.ident or 0, OUTSIDE), spent - self._clocks.get(task, 0.0))
            self._clocks[task] = spent
        self._add(OUTSIDE, outside - self._outside)
        self._outside = max(outside, self._outside)
        if time.monotonic() - self._written > WRITE_S:
            self.write()

    def _stacks(self) -> dict[int, str]:
        """Of all threads, as Python writes them after a crash: frames as objects would change those of Cython."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        faulthandler.dump_traceback(self._file)
        text = os.pread(self._file, MAX_BYTES, 0).decode(errors="replace")
        return {
            int(head.split()[1], 16): "\n".join(f"{file}:{function}" for file, function in FRAME.findall(stack))
            for head, _, stack in (part.partition("\n") for part in text.replace("Current t", "T").split("\n\n"))
        }

    def _add(self, stack: str, passed: float) -> None:
        if passed > 0:
            self.totals[stack] = self.totals.get(stack, 0.0) + passed

    def write(self) -> None:
        """Replace the file of this process."""
        self._written = time.monotonic()
        path = Path(FOLDER, f"{os.getpid()}.json")
        (draft := path.with_suffix(".new")).write_text(json.dumps({"command": sys.orig_argv, "totals": self.totals}))
        draft.replace(path)


def _clock(task: int) -> float:
    """Seconds that a thread of this process has run; 0 if it has ended. Python keeps its lock, unlike for a file."""
    try:
        return time.clock_gettime(~task << 3 | OF_THREAD)
    except OSError:
        return 0.0


def start() -> None:
    """Begin to look at this process."""
    threading.Thread(target=Sampler, name="stack samples", daemon=True).start()


if FOLDER:
    start()
    os.register_at_fork(after_in_child=start)
