"""Shows within a second that a command works: a first line before its heavy imports, its stages, and long silences."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TextIO

from league.stages import LOGGER

FIRST_AFTER_S = 0.7
"""Silence after which a command says that it works; most answer before that."""
AGAIN_AFTER_S = 5.0
"""Silence within a stage after which its age is shown."""
LOOK_EVERY_S = 0.1
MAX_START_S = 5.0
"""Longest start of the interpreter; a process that is older runs its second command, as in tests."""
HEAVY = frozenset({"ray", "torch"})
"""Packages that a cold machine reads for seconds, and that no other thread interrupts meanwhile."""


class FirstOutput(logging.Handler):
    """Writes lines to stderr, so that results and JSON on stdout stay as they are; a context manager.

    Args:
      command: as typed, such as "train".
    """

    def __init__(self, command: str) -> None:
        super().__init__(logging.INFO)
        self._current = f"{command} starts"
        self._has_stage = False
        self._is_silent = True
        self._own = False
        self._process = os.getpid()
        self._since = self._stage_at = time.monotonic() - _process_age_s()
        self._ended = threading.Event()
        self._streams: list[TextIO] = []
        self._finder = _HeavyImports(self)
        self._level = LOGGER.level

    def __enter__(self) -> Self:
        for stream in (sys.stdout, sys.stderr):
            self._watch(stream)
        sys.meta_path.insert(0, self._finder)
        LOGGER.addHandler(self)
        LOGGER.setLevel(logging.INFO)
        threading.Thread(target=self._look, name="first output", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        LOGGER.removeHandler(self)
        LOGGER.setLevel(self._level)
        sys.meta_path.remove(self._finder)
        for stream in self._streams:
            del stream.write

    def emit(self, record: logging.LogRecord) -> None:
        """Show a stage that begins, unless all may be over in a moment."""
        self._has_stage, self._current, self._stage_at = True, record.getMessage(), time.monotonic()
        if not self._is_silent or self._stage_at - self._since >= FIRST_AFTER_S:
            self._write(f"{self._current} ...")

    def before_heavy_import(self) -> None:
        """Show that the command works, unless something was shown."""
        if self._is_silent:
            self._write(f"{self._current} ...")

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            silent_s = time.monotonic() - self._since
            if self._is_silent and silent_s >= FIRST_AFTER_S:
                self._write(f"{self._current} ...")
            elif self._has_stage and silent_s >= AGAIN_AFTER_S:
                self._write(f"{self._current}: {time.monotonic() - self._stage_at:.0f} s so far ...")

    def _write(self, text: str) -> None:
        if os.getpid() != self._process:  # in a fork of the command
            return
        self._own = True
        try:
            sys.stderr.write(f"league: {text}\n")
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads it, or the stream is closed: the command continues
            self._ended.set()
        finally:
            self._own = False

    def _watch(self, stream: TextIO) -> None:
        """Notice what is written to a stream: whatever it is, the command has been heard of."""
        if stream in self._streams:  # both lead to the same place
            return
        write = stream.write

        def noticed(text: str) -> int:
            self._since, self._is_silent = time.monotonic(), False
            if not self._own:
                self._has_stage = False
            return write(text)

        stream.write = noticed  # type: ignore[method-assign]
        self._streams.append(stream)


def _process_age_s() -> float:
    """Seconds since this process began, for its user waits since then; 0 in one that has done other things before."""
    try:
        began = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):  # another system than Linux
        return 0.0
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    return age_s if 0.0 <= age_s < MAX_START_S else 0.0


class _HeavyImports(MetaPathFinder):
    """Finds nothing: it only sees that a heavy import begins."""

    def __init__(self, shown: FirstOutput) -> None:
        self._shown = shown

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        del path, target
        if fullname in HEAVY:
            self._shown.before_heavy_import()
        return None
