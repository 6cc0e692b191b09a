"""Kills the daemon, the actor host and the learner host of a live run at random moments, and counts the losses.

A reader outside the run follows its journal and records every finished lease: all that it reads was acknowledged. In
the end every recorded lease must be there exactly once, with the same content and number. The journal must replay to
the stored state, and the league's totals must be the sum of its leases. Ten seconds after the end of a daemon
nothing of it may be left: no process, no folder of its Ray, no shared memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from benchmarks.durability.audit import Audit, audit_run, verify
from benchmarks.durability.leak_check import Remains, left_of, remains_of
from benchmarks.journal_follower import Command, JournalFollower, Noted, RunFailed, league_program, of_kind, wait_for
from benchmarks.report import Report
from league.core.state.events import LeaseFinished, LeaseGranted
from league.runtime.reaper import descendants

TARGETS = {"daemon": "daemon", "actor": "actor_host", "learner": "learner_host"}
"""Targets to kill -> their kind in `league status`."""

START_UP_S = 180.0
RECOVERY_S = 180.0
"""Longest wait for the next finished training lease after a kill."""

STATUS_S = 60.0
CLEAN_S = 10.0
"""After so long nothing of a killed daemon may be left."""

CENSUS_S = 60.0
"""Longest wait for what is left after that, so that it does not disturb what follows."""

LOOK_AT_REMAINS_S = 0.1
MAX_LEFT_EARLY = 3
"""So many commands may leave by themselves before the script gives up."""

MOMENT_S = 3.0
"""A running target is killed within so many seconds of its recovery."""

EARLY_SHARE = 0.3
EARLY_S = 12.0
"""This share of the daemon's kills comes while it starts up, within so many seconds of its command."""

SETTINGS: dict[str, object] = {
    "env": {"id": "connect_four"},
    "name": "chaos",
    "network": {"hidden": [32]},
    "actors": {"num_envs": 64},
    "learner": {"batch_rows": 32, "precision": "float32"},
    "league": {
        "lease_steps": 64,
        "players": [
            {"role": role, "gate": {"min_steps": 10_000, "timeout_steps": 20_000}}
            for role in ("main_agent", "main_exploiter", "league_exploiter")
        ],
    },
    "runtime": {"kind": "ray", "object_store_mb": 100, "checkpoint_updates": 20},
    "evaluation": {"bots": []},
    "wandb": {"mode": "disabled"},
}
"""Small and busy: a lease takes a fraction of a second, snapshots, resets and checkpoints are always under way."""


@dataclass
class Findings:
    """Observations of a run.

    Fields:
      finished: every finished lease that the outside reader saw, in order.
      recovery_s: target -> seconds from each kill to the next finished training lease that was granted after it.
      clean_s: seconds after each end of a daemon until nothing was left.
      left: what was left ten seconds after such an end, one line each.
      kills: target -> number. left_early: commands that ended although nobody asked them to, with their last lines.
    """

    finished: list[Noted] = field(default_factory=list)
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    clean_s: list[float] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    left_early: list[str] = field(default_factory=list)


class Chaos:
    """One run and what is done to it.

    Args:
      folder: for the run and its log.
      rng: chooses the moments.
    """

    def __init__(self, folder: Path, *, rng: random.Random) -> None:
        self._folder = folder
        self._rng = rng
        self._follower = JournalFollower(folder / "run" / "journal.db")
        self._command: Command | None = None
        self._remains: list[Remains] = []
        self._look_at_remains = 0.0
        self._granted = 0
        self._homes: dict[int, str | None] = {}
        self._training_lease = 0
        self.run = folder / "run"
        self.findings = Findings()

    def start(self) -> None:
        """Start the run and wait for its first finished training lease."""
        config = self._folder / "config.yaml"
        config.write_text(yaml.safe_dump(SETTINGS))
        self._launch("train", str(config), "--run-dir", str(self.run))
        self._await_lease(after=0, deadline_s=START_UP_S)

    def strike(self, target: str, *, hurry: bool) -> None:
        """Kill a process of the run at a random moment and see the run through to the next finished training lease.

        Args:
          target: of `TARGETS`.
          hurry: of a daemon, do not wait for that lease: the next kill comes while it starts up.
        """
        kill = self._kill_daemon if target == "daemon" else lambda: self._kill_worker(TARGETS[target])
        begin = kill()
        self.findings.kills[target] += 1
        self._tick()
        if hurry:
            self._idle(self._rng.uniform(0.0, EARLY_S))
            return
        self._await_lease(after=self._granted, deadline_s=RECOVERY_S)
        self.findings.recovery_s.setdefault(target, []).append(time.monotonic() - begin)

    def stop(self) -> None:
        """Stop the run in good order and see what it leaves.

        Raises:
          RunFailed: it did not stop.
        """
        command = self._running()
        remains = self._census()
        code = command.stop()
        self._tick()
        if code != 0:
            raise command.failure("it did not stop in good order")
        self._remains.append(replace(remains, killed_at=time.monotonic()))
        if not self._idle(CENSUS_S, until=lambda: not self._remains):
            raise command.failure("the remains of a daemon cannot be listed")

    def close(self) -> None:
        """End whatever still runs."""
        self._follower.close()
        if self._command is not None:
            self._command.close()

    def _kill_daemon(self) -> float:
        self._idle(self._rng.uniform(0.0, MOMENT_S))
        remains = self._census()
        begin = time.monotonic()
        self._running().kill()
        self._remains.append(replace(remains, killed_at=begin))
        self._tick()
        self._launch("resume", str(self.run))
        return begin

    def _kill_worker(self, kind: str) -> float:
        pid = self._worker(kind)
        self._idle(self._rng.uniform(0.0, MOMENT_S))
        begin = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return begin

    def _worker(self, kind: str) -> int:
        """Process id of a worker by `league status`; it must run below our own daemon."""
        deadline = time.monotonic() + RECOVERY_S
        while time.monotonic() < deadline:
            command = [league_program(), "status", str(self.run), "--json"]
            shown = subprocess.run(command, capture_output=True, text=True, timeout=STATUS_S, check=True).stdout
            status = json.loads(shown)
            below = descendants(self._running().pid)
            for worker in status["workers"]:
                if worker["kind"] == kind and worker["pid"] in below:
                    return int(worker["pid"])
            self._idle(0.2)
        raise self._running().failure(f"`league status` shows no {kind} of it")

    def _launch(self, *arguments: str) -> None:
        self._command = Command(arguments, log=self._folder / "log")
        self._command.start()

    def _running(self) -> Command:
        assert self._command is not None, "not started"
        return self._command

    def _await_lease(self, *, after: int, deadline_s: float) -> None:
        """Wait for a training lease with a number above `after` to finish; start the run again where it has ended."""
        deadline = time.monotonic() + deadline_s
        while not self._idle(deadline - time.monotonic(), until=lambda: self._training_lease > after or self._ended()):
            raise self._running().failure(f"no lease finished within {deadline_s:.0f} s")
        if self._training_lease > after:
            return
        failure = self._running().failure("it left by itself")
        self.findings.left_early.append(str(failure))
        if len(self.findings.left_early) > MAX_LEFT_EARLY:
            raise failure
        self._launch("resume", str(self.run))
        self._await_lease(after=after, deadline_s=deadline_s)

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
            if self._homes.get(finished.lease_id) is not None:
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


def rows_of(findings: Findings, found: Audit, *, problems: Sequence[str], kills: int, targets: Sequence[str]) -> Report:
    """The rows of the report."""
    report = Report()
    for target in targets:
        report.add(f"kill -9 of the {target}", findings.kills[target], "kills", at_least=kills)
    report.add("finished leases seen by an outside reader", len(findings.finished), "leases", at_least=1)
    report.add("of these lost or changed", len(found.lost), "leases", at_most=0)
    report.add("leases counted twice", len(found.doubled), "leases", at_most=0)
    report.add("totals that are not the sum of the leases", len(found.off), "totals", at_most=0)
    report.add("finished leases in the journal", found.leases, "leases")
    report.add("games in the journal", found.games, "games")
    report.add("problems found by `league verify`", len(problems), "problems", at_most=0)
    report.add("commands that left by themselves", len(findings.left_early), "commands", at_most=0)
    report.add(f"left {CLEAN_S:.0f} s after a daemon's end", len(findings.left), "things", at_most=0)
    if findings.clean_s:
        report.add("daemon's end to nothing left, longest", max(findings.clean_s), "s")
    for target, seconds in findings.recovery_s.items():
        report.add(f"kill of the {target} to the next finished training lease, p50", statistics.median(seconds), "s")
        report.add(f"kill of the {target} to the next finished training lease, longest", max(seconds), "s")
    return report


def run_chaos(folder: Path, *, targets: Sequence[str], kills: int, seed: int) -> Report:
    """Start, strike, stop, look.

    Raises:
      RunFailed: the run could not be brought back, or did not stop.
    """
    rng = random.Random(seed)
    chaos = Chaos(folder, rng=rng)
    try:
        chaos.start()
        for target in targets:
            for number in range(kills):
                early = rng.random() < EARLY_SHARE
                chaos.strike(target, hurry=target == "daemon" and early and number + 1 < kills)
                print(f"  {target} {number + 1}/{kills}: {_so_far(chaos.findings)}", flush=True)
        chaos.stop()
    finally:
        chaos.close()
    found, problems = audit_run(chaos.run, chaos.findings.finished), verify(chaos.run)
    for line in (*found.lost, *found.doubled, *found.off, *problems, *chaos.findings.left, *chaos.findings.left_early):
        print(f"  FOUND {line}", flush=True)
    return rows_of(chaos.findings, found, problems=problems, kills=kills, targets=targets)


def _so_far(findings: Findings) -> str:
    newest = ", ".join(f"{target} {seconds[-1]:.1f} s" for target, seconds in findings.recovery_s.items())
    return f"{len(findings.finished)} finished leases seen; last recoveries: {newest or 'none'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="of each target")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--seed", type=int, help="of the moments (default: a new one, printed)")
    parser.add_argument("--folder", type=Path, help="keep the run and its log here (default: a folder that is removed)")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    targets = list(TARGETS) if options.target == "all" else [options.target]
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    with tempfile.TemporaryDirectory(prefix="league-chaos-", ignore_cleanup_errors=True) as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            report = run_chaos(folder, targets=targets, kills=options.kills, seed=seed)
        except RunFailed as error:
            print(error, file=sys.stderr)
            return 1
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
