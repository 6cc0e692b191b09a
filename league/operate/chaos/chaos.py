"""`league chaos`: starts a run of its own, breaks it by a plan with a seed, and holds the books against what was seen.

It is the run's supervisor: it starts the daemon again at once after each end. A reader outside the run follows the
journal and records every finished lease: all that it reads was acknowledged. In the end each must be there exactly
once. Only processes below the run's own daemon are struck.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from league.core.state.events import LeaseFinished, LeaseGranted
from league.operate.chaos.audit import audit_run, verify
from league.operate.chaos.faults import damage_copy, fill_for, helper_of, slow_for, stop_for
from league.operate.chaos.follower import Command, JournalFollower, RunFailed, of_kind, wait_for
from league.operate.chaos.leftovers import Remains, left_of, remains_of
from league.operate.chaos.plan import (
    ACTOR,
    CORRUPT,
    DAEMON,
    FILL,
    FORK_SERVER,
    HEAD,
    KILL,
    LEARNER,
    SLOW,
    STOP,
    Strike,
    StrikePlan,
)
from league.operate.chaos.verdict import ChaosVerdict, Findings, verdict_of
from league.processes.reaper import descendants
from league.store.run_folder import RunFolder

KINDS = {ACTOR: "actor_host", LEARNER: "learner_host"}
"""Target -> kind of its process in the run's heartbeat."""

START_UP_S = 600.0
RECOVERY_S = 600.0
"""Longest wait for the next finished training lease after a fault."""

FIND_S = 60.0
"""Longest wait for a process that is to be struck."""

MAX_MISSES = 10
"""After so many targets in a row that were not there the run is given up."""

CLEAN_S = 10.0
"""After so long nothing of a killed daemon may be left."""

CENSUS_S = 60.0
"""Longest wait for what is left after that, so that it does not disturb what follows."""

LOOK_AT_REMAINS_S = 0.1
MAX_LEFT_EARLY = 3
"""So many daemons may end unasked before the run is given up."""

FATAL_S = 90.0
"""A daemon may end within so many seconds of a fault that it need not survive: of its Ray's head, or of its disk."""


class Chaos:
    """One run and what is done to it.

    Args:
      run: its folder, which this starts and ends.
      first: the `league` arguments that make it, or continue it at first. folder: for the log and copies.
    """

    def __init__(self, run: Path, *, first: Sequence[str], folder: Path) -> None:
        self.run = run
        self.findings = Findings()
        self._first, self._folder = tuple(first), folder
        self._follower = JournalFollower(run / "journal.db")
        self._command: Command | None = None
        self._remains: list[Remains] = []
        self._look_at_remains = 0.0
        self._granted = 0
        self._homes: dict[int, str | None] = {}
        self._training_lease = 0
        self._may_end_until = 0.0

    def start(self) -> None:
        """Start the run and wait for its first finished training lease."""
        self._launch(*self._first)
        self._await_lease(after=0, deadline_s=START_UP_S)

    def strike(self, strike: Strike) -> bool:
        """Strike, and see the run through to the next finished training lease, unless the next strike is to come early.

        Returns:
          Whether the target was there.
        Raises:
          RunFailed: the run did not recover.
        """
        self._idle(strike.after_s)
        self._see_ended()
        since = self._carry_out(strike)
        if since is None:
            self.findings.missed[strike.name] += 1
            return False
        self.findings.strikes[strike.name] += 1
        self._tick()
        if strike.hurry_s:
            self._idle(strike.hurry_s)
        elif strike.kind != CORRUPT:
            self._await_lease(after=self._granted, deadline_s=RECOVERY_S)
            self.findings.recovery_s.setdefault(strike.name, []).append(time.monotonic() - since)
        return True

    def await_recovery(self) -> None:
        """Wait for the next finished training lease that is granted from now on. Raises RunFailed."""
        self._tick()
        self._await_lease(after=self._granted, deadline_s=RECOVERY_S)

    def watch(self, seconds: float) -> None:
        """Watch the run for so long; a daemon that has ended starts again."""
        self._idle(seconds)
        self._see_ended()

    def stop(self) -> None:
        """Stop the run in good order and see what it leaves.

        Raises:
          RunFailed: it did not stop.
        """
        self._await_lease(after=self._granted, deadline_s=RECOVERY_S)
        command = self._running()
        remains = self._census()
        in_order = command.stop()
        self._tick()
        if not in_order:
            raise command.failure("it did not stop in good order")
        self._remains.append(replace(remains, killed_at=time.monotonic()))
        if not self._idle(CENSUS_S, until=lambda: not self._remains):
            raise command.failure("the remains of a daemon cannot be listed")

    def close(self) -> None:
        """End whatever still runs."""
        self._follower.close()
        if self._command is not None:
            self._command.close()

    def _carry_out(self, strike: Strike) -> float | None:
        """Time from which recovery counts; None where the target is not there."""
        if strike.kind == CORRUPT:
            noticed, sentence = damage_copy(self.run, strike.target, place=strike.place, folder=self._folder)
            self.findings.noticed += noticed
            self.findings.unnoticed += [] if noticed else [sentence]
            return time.monotonic()
        pid = self.pid_of(strike)
        if not pid:
            return None
        if strike.target == HEAD or strike.kind == FILL:
            self._may_end_until = time.monotonic() + FATAL_S + strike.lasts_s
        if strike.kind == KILL:
            return self._kill_daemon() if strike.target == DAEMON else _kill(pid)
        {STOP: stop_for, SLOW: slow_for, FILL: fill_for}[strike.kind](pid, strike.lasts_s, idle=self._idle)
        return time.monotonic()

    def pid_of(self, strike: Strike) -> int:
        """The process to strike, below our own daemon or that itself; 0 where it is not there in time."""
        if strike.target == DAEMON:
            return self._running().pid
        found: list[int] = []

        def look() -> bool:
            below = descendants(self._running().pid)
            status = RunFolder(self.run).read_status()
            workers = [] if status is None else [worker for worker in status.workers if worker.pid in below]
            if strike.target in (HEAD, FORK_SERVER):  # where hosts play without one, it has been killed before
                found[:] = [helper_of(self._running().pid, strike.target)]
                return found != [0] or bool(workers) or self._ended()
            found[:] = [worker.pid for worker in workers if worker.kind == KINDS[strike.target]]
            return bool(found) or self._ended()

        self._idle(FIND_S, until=look)
        return found[int(strike.place * len(found))] if found else 0

    def _kill_daemon(self) -> float:
        remains = self._census()
        begin = time.monotonic()
        self._running().kill()
        self._remains.append(replace(remains, killed_at=begin))
        self._tick()
        self._relaunch()
        return begin

    def _relaunch(self) -> None:
        self.findings.restarts += 1
        made = (self.run / "config.yaml").is_file()
        self._launch(*(("resume", str(self.run), "--no-eval") if made else self._first))

    def _launch(self, *arguments: str) -> None:
        self._command = Command(arguments, log=self._folder / "chaos.log")
        self._command.start()

    def _running(self) -> Command:
        assert self._command is not None, "not started"
        return self._command

    def _await_lease(self, *, after: int, deadline_s: float) -> None:
        """Wait for a training lease with a number above `after` to finish; a daemon that has ended starts again."""
        if not self._idle(deadline_s, until=lambda: self._training_lease > after or self._ended()):
            raise self._running().failure(f"no lease finished within {deadline_s:.0f} s")
        if self._training_lease > after:
            return
        self._see_ended()
        self._await_lease(after=after, deadline_s=deadline_s)

    def _see_ended(self) -> None:
        """Start the daemon again where it has ended, and note where nothing had struck that it need not survive."""
        if not self._ended():
            return
        if time.monotonic() > self._may_end_until:
            failure = self._running().failure("it left by itself")
            self.findings.left_early.append(str(failure))
            if len(self.findings.left_early) > MAX_LEFT_EARLY:
                raise failure
        self._relaunch()

    def _ended(self) -> bool:
        return self._running().ended is not None

    def _idle(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> bool:
        """Keep watching for so long, or until something is so; whether it was."""

        def look() -> bool:
            self._tick()
            return until()

        return wait_for(look, deadline_s=seconds)

    def _tick(self) -> None:
        """Note what is new in the journal, and what is left of killed daemons."""
        noted = self._follower.poll()
        for _, granted in of_kind(noted, LeaseGranted):
            self._granted = max(self._granted, granted.lease.lease_id)
            self._homes[granted.lease.lease_id] = granted.lease.home
        for item, finished in of_kind(noted, LeaseFinished):
            self.findings.finished.append(item)
            if self._homes.pop(finished.lease_id, None) is not None:
                self._training_lease = max(self._training_lease, finished.lease_id)
        now = time.monotonic()
        if now >= self._look_at_remains:
            self._look_at_remains = now + LOOK_AT_REMAINS_S
            self._remains = [remains for remains in self._remains if not self._settled(remains, now)]

    def _settled(self, remains: Remains, now: float) -> bool:
        """True if the verdict on a killed daemon's remains has been reached."""
        left = left_of(remains)
        since = now - remains.killed_at
        if not left:
            self.findings.clean_s.append(since)
            return True
        if since <= CLEAN_S:
            return False
        self.findings.left += [f"{since:.0f} s after the end of daemon {remains.daemon}: {line}" for line in left]
        return True

    def _census(self) -> Remains:
        pid = self._running().pid
        below = {other: start for other, start in self._running().census().items() if other != pid}
        return remains_of(pid, below, now=time.monotonic())


def run_chaos(
    chaos: Chaos,
    plan: StrikePlan,
    *,
    seed: int,
    for_s: float | None = None,
    strikes: int | None = None,
    say: Callable[[str], object] = lambda sentence: None,
) -> ChaosVerdict:
    """Start, strike until the time or the number is reached, stop, and look.

    Args:
      seed: of the plan, for the verdict. for_s: seconds from the first finished lease.
      strikes: most of them; those whose target was not there do not count.
    """
    failure, begun = "", time.monotonic()
    try:
        chaos.start()
        until = None if for_s is None else time.monotonic() + for_s
        number = misses = 0
        while (until is None or time.monotonic() < until) and (strikes is None or number < strikes):
            strike = plan.draw()
            if chaos.strike(strike):
                number, misses = number + 1, 0
                say(f"{number}: {strike.name}; {len(chaos.findings.finished):,} finished leases seen")
            elif (misses := misses + 1) == MAX_MISSES:
                raise RunFailed(f"{misses} targets in a row were not there, the last of {strike.name}")
        chaos.stop()
    except RunFailed as error:
        failure = str(error)
    finally:
        chaos.close()
    with contextlib.suppress(FileNotFoundError):
        found, problems = audit_run(chaos.run, chaos.findings.finished), verify(chaos.run)
    seconds = time.monotonic() - begun
    return verdict_of(chaos.findings, found, problems, run=str(chaos.run), seed=seed, seconds=seconds, failure=failure)


def _kill(pid: int) -> float:
    begin = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return begin
