"""Follows a run from outside: its command as a child process, its journal as a reader, its processes by number."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from league.core.state.events import EVENTS
from league.envs.workers.child_endings import wait_for_killed
from league.errors import PREEMPTED, StorageError
from league.processes.processor_time import cpu_seconds
from league.processes.reaper import descendants
from league.store.journal_reader import JournalReader
from league.store.lock import start_ticks

LOOK_S = 0.02
"""Between two looks at a journal."""

STOP_S = 90.0
"""Longest wait for an orderly stop: the daemon itself gives a drain 60 s."""

TAIL_LINES = 30

E = TypeVar("E")


class RunFailed(Exception):  # noqa: N818
    """A run ended, or did nothing within its deadline; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class Noted:
    """An event that an outside reader has seen. seq: its number; at: seconds of the follower's clock."""

    seq: int
    at: float
    event: object


class JournalFollower:
    """Reads what is new in a journal that another process writes. What it has seen once is durable, so it must stay.

    Args:
      path: of the journal; it may come later.
      monotonic: seconds that never go back.
    """

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._reader: JournalReader | None = None
        self.seq = 0

    def poll(self) -> list[Noted]:
        """The events since the last call; none while the file is missing or being recovered.

        Raises:
          JournalError: the journal is damaged.
        """
        if not self._path.exists():
            return []
        try:
            if self._reader is None:
                self._reader = JournalReader.open_readonly(self._path, events=EVENTS)
            rows = list(self._reader.replay(from_seq=self.seq + 1))
        except StorageError:  # busy with the recovery after a kill: the next look will tell
            self.close()
            return []
        now = self._monotonic()
        if rows:
            self.seq = rows[-1][0]
        return [Noted(seq, now, event) for seq, event in rows]

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class Command:
    """One `league` command as a child process with its output in a file.

    Args:
      arguments: of `league`.
      log: gets the output, appended.
      environment: set beside the present one.
    """

    def __init__(self, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.arguments = tuple(arguments)
        self._log = log
        self._environment = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._seen: dict[int, int] = {}

    def start(self) -> None:
        """Start the process, in a session of its own so that a Ctrl-C on the terminal reaches this script alone."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [league_program(), *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Exit status, None while it runs."""
        assert self._process is not None, "not started"
        return self._process.poll()

    def census(self) -> dict[int, int]:
        """Process id -> start time of the command and everything below it, now; remembered for `close`."""
        found = {} if self.ended is not None else {self.pid: start_ticks(self.pid), **descendants(self.pid)}
        self._seen.update(found)
        return found

    def kill(self) -> None:
        """SIGKILL to the command alone; what is below it is the reaper's business."""
        assert self._process is not None, "not started"
        self._process.kill()
        wait_for_killed(self._process)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command alone."""
        assert self._process is not None, "not started"
        self._process.send_signal(number)

    def stop(self) -> bool:
        """Ask it to stop and wait; False where it did not leave within `STOP_S`, or left for another reason."""
        assert self._process is not None, "not started"
        self.census()
        if self.ended is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_S) in (0, PREEMPTED)
        except subprocess.TimeoutExpired:
            return False

    def close(self) -> None:
        """End whatever is left of the command and of what was seen below it, by process id; may be called twice."""
        if self._process is None:
            return
        self.census()
        if self.ended is None:
            self.kill()
        for pid in still_running(self._seen):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def failure(self, what: str) -> RunFailed:
        """An error that says what happened and shows the end of the log."""
        tail = self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        state = "still runs" if self.ended is None else f"left with code {self.ended}"
        return RunFailed("\n".join([f"`league {' '.join(self.arguments)}` ({state}): {what}", *tail]))


def league_program() -> str:
    """The `league` command beside the running Python."""
    return str(Path(sys.executable).with_name("league"))


def still_running(processes: Mapping[int, int]) -> dict[int, int]:
    """Those of the processes (id -> start time) that still run, told from later ones of the same id."""
    return {pid: start for pid, start in processes.items() if start and start_ticks(pid) == start}


def tree_core_seconds(root: int) -> float:
    """Processor time that a process and everything that now runs below it have used."""
    return sum(cpu_seconds(pid) for pid in (root, *descendants(root)))


def wait_for(
    condition: Callable[[], bool],
    *,
    deadline_s: float,
    look_s: float = LOOK_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait for a condition; returns True if it came true before the deadline."""
    end = monotonic() + deadline_s
    while not condition():
        if monotonic() >= end:
            return False
        time.sleep(look_s)
    return True


def of_kind(noted: Iterable[Noted], kind: type[E]) -> list[tuple[Noted, E]]:
    """The events of one kind with where they were seen."""
    return [(item, item.event) for item in noted if isinstance(item.event, kind)]
