"""The supervisor of one run: starts it, starts it again after a crash with growing pauses, and passes a stop on.

It is a process of its own, in a session of its own, without a terminal: `python -m league.run.control.supervisor`. It
imports neither torch nor ray, so that it survives what they do to a process.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import msgspec

from league.errors import PREEMPTED, USER_ERROR, LeagueError, StorageError
from league.processes.child_process import end_with_parent, session_key
from league.processes.stop_signals import stop_signals
from league.store.disk_space import disk_space
from league.store.lock import this_process
from league.store.run_folder import RunFolder, RunStatus
from league.store.supervision import Supervision, write_supervision

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
LONG_LIFE_S = 600.0
"""A run that lived so long starts again with the shortest pause: its crash was not one of a row."""
MAX_QUICK_CRASHES = 10
"""After so many crashes in a row, each within `LONG_LIFE_S`, the supervisor gives the run up."""

ROOM_BYTES = 64 << 20
"""Free space on the disk of the run without which it is not started again: it could not write down its own start."""
SPACE_EVERY_S = 5.0

CONSOLE_BYTES = 4 << 20
"""Size at which the console's log is moved aside; one older log is kept."""
LOOK_EVERY_S = 0.2
TRIM_EVERY_S = 60.0

NO_EVAL = "--no-eval"


@dataclass(frozen=True)
class Crash:
    """The end of a run that was not asked for. life_s: how long it had lived. was_ready: it had begun to train."""

    reason: str
    life_s: float
    was_ready: bool


def pause_after(quick_crashes: int) -> float:
    """Seconds before the next start: 1, 2, 4, ... up to a minute."""
    return float(min(FIRST_PAUSE_S * 2.0 ** min(quick_crashes - 1, 16), LONGEST_PAUSE_S))


class Supervisor:
    """Keeps one run alive.

    Args:
      folder: of the run; it need not hold one yet.
      first: the `league` arguments that make the run where the folder holds none.
      again: those that continue it. settings: added to these until it has trained, when the journal has them.
      restart: whether a crash is followed by another start.
      popen: starts a process. space: free and all bytes of the file system of a path.
      wall_time, monotonic, sleep: of the clock.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        first: Sequence[str],
        again: Sequence[str],
        settings: Sequence[str] = (),
        restart: bool = True,
        popen: Callable[[Sequence[str]], subprocess.Popen[bytes]] | None = None,
        space: Callable[[Path], tuple[int, int]] = disk_space,
        wall_time: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._first, self._again, self._settings = tuple(first), tuple(again), tuple(settings)
        self._restart = restart
        self._popen = popen or start_league
        self._space = space
        self._monotonic, self._sleep, self._wall_time = monotonic, sleep, wall_time
        self._child: subprocess.Popen[bytes] | None = None
        self._trim_at = monotonic() + TRIM_EVERY_S
        self._record = Supervision(
            supervisor=this_process(folder.path),
            started_at=wall_time(),
            no_eval=NO_EVAL in self._again,
            no_restart=not restart,
        )
        self._stops = 0

    def ask_to_stop(self) -> None:
        """End the run and do not start it again; asked twice, the run leaves at once."""
        self._stops += 1
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)

    def run(self) -> int:
        """Supervise until the run has ended for good; returns the exit code to leave with."""
        quick = 0
        while True:
            self._write()
            crash, code = self._one_life()
            if crash is None:
                self._write()
                return code
            if crash.was_ready:
                self._settings = ()
            was_full = self._restart and self._is_full()
            reason = f"{crash.reason}, as the disk was full" if was_full else crash.reason
            self._note(last_crash=reason, last_crash_at=self._wall_time())
            if was_full:
                self._wait_for_space()
            quick = 1 if crash.life_s >= LONG_LIFE_S or was_full else quick + 1
            refused = code == USER_ERROR and not crash.was_ready and not was_full
            if refused or not self._restart or quick >= MAX_QUICK_CRASHES:
                why = "it refused to start" if refused else f"it crashed {quick} times in a row"
                self._note(gave_up=why if self._restart or refused else "it is not to be restarted")
                self._write()
                return code or 1
            self._rest(pause_after(quick))
            if self._stops:
                return 0
            self._note(restarts=self._record.restarts + 1)

    def _one_life(self) -> tuple[Crash | None, int]:
        """Start the run and wait for its end; the crash is None where it ended as it should."""
        begun = self._monotonic()
        seen_before = _heartbeat(self._folder)
        is_made = self._folder.config_path.is_file()
        try:
            self._child = self._popen((*self._again, *self._settings) if is_made else self._first)
        except OSError as error:  # such as no room for a process at this moment
            return Crash(f"it could not be started: {error.strerror}", 0.0, was_ready=False), 1
        if self._stops:  # asked between two lives
            self._child.send_signal(signal.SIGTERM)
        while (code := self._child.poll()) is None:
            self._sleep(LOOK_EVERY_S)
            self._trim()
        life_s = self._monotonic() - begun
        if code in (0, PREEMPTED) or self._stops or _ended_in_order(self._folder, seen_before):
            self._note(stopping=bool(self._stops))
            return None, 0
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Crash(reason, life_s, was_ready=_began_to_train(self._folder, seen_before)), max(code, 0)

    def _is_full(self) -> bool:
        try:
            return self._space(self._folder.path)[0] < ROOM_BYTES
        except OSError:
            return False

    def _wait_for_space(self) -> None:
        while not self._stops and self._is_full():
            self._rest(SPACE_EVERY_S)

    def _write(self) -> None:
        with contextlib.suppress(StorageError):  # it is for people; on a full disk the run matters more
            write_supervision(self._folder, self._record)

    def _rest(self, seconds: float) -> None:
        until = self._monotonic() + seconds
        while not self._stops and self._monotonic() < until:
            self._sleep(LOOK_EVERY_S)

    def _note(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)

    def _trim(self) -> None:
        """Move a long console log aside. Its writers append, so that they continue at the start of the emptied file."""
        if self._monotonic() < self._trim_at:
            return
        self._trim_at = self._monotonic() + TRIM_EVERY_S
        log = self._folder.console_log_path
        try:
            if log.stat().st_size > CONSOLE_BYTES:
                shutil.copyfile(log, log.with_suffix(".log.1"))
                os.truncate(log, 0)
        except OSError:  # a full disk or a removed log is no reason to end a run
            return


def _heartbeat(folder: RunFolder) -> float:
    """Wall time of the last heartbeat, 0 where there is none."""
    try:
        status = folder.read_status()
    except LeagueError:
        return 0.0
    return 0.0 if status is None else status.heartbeat_at


def _began_to_train(folder: RunFolder, seen_before: float) -> bool:
    """True if the last life came as far as counting its training time."""
    status = _status_since(folder, seen_before)
    return status is not None and status.trained_s is not None


def _ended_in_order(folder: RunFolder, seen_before: float) -> bool:
    """True if the last life saved the run at its end: what failed then was the evaluation after it."""
    status = _status_since(folder, seen_before)
    return status is not None and status.phase == "stopped"


def _status_since(folder: RunFolder, seen_before: float) -> RunStatus | None:
    """The last heartbeat, if it is another one; the clock may have gone back since."""
    try:
        status = folder.read_status()
    except LeagueError:
        return None
    return status if status is not None and status.heartbeat_at != seen_before else None


def start_league(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start `league ARGUMENTS`. The process is asked to stop when this one dies, however that happens."""
    return subprocess.Popen(
        [sys.executable, "-m", "league", *arguments],
        stdin=subprocess.DEVNULL,
        preexec_fn=functools.partial(end_with_parent, signal.SIGTERM),  # noqa: PLW1509  the supervisor has one thread
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Supervise one run under the lock that allows one supervisor only; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="run folder")
    parser.add_argument("--no-restart", action="store_true", help="do not start again after a crash")
    parser.add_argument("--first", type=json.loads, default=[], help="arguments that make the run, a JSON list")
    parser.add_argument("--again", type=json.loads, default=[], help="arguments that continue it, a JSON list")
    parser.add_argument("--settings", type=json.loads, default=[], help="added to these at first, a JSON list")
    given = parser.parse_args(arguments)
    folder = RunFolder(given.run)
    supervisor = Supervisor(
        folder, first=given.first, again=given.again, settings=given.settings, restart=not given.no_restart
    )

    def stop(number: int, frame: FrameType | None) -> None:
        supervisor.ask_to_stop()

    session_key(create=True)  # a restart may load what the start before it marked, also without a home folder
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with folder.supervisor_lock, stop_signals(stop):
            return supervisor.run()
    except LeagueError as error:
        print(f"league: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
