"""Recovery times: of an actor host that hangs, of a learner that is killed, and of a daemon with a million results."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from benchmarks.durability.struck import struck_run
from benchmarks.report import Report
from benchmarks.throughput.league_scale import measure_restart
from league.operate.chaos.chaos import Chaos
from league.operate.chaos.plan import ACTOR, KILL, LEARNER, STOP, Strike
from league.operate.chaos.verdict import recovery_of

DEADLINE_S = 20.0
HANGS, KILLS = 20, 20
RESULTS = 1_000_000
RUNTIME: dict[str, object] = {
    "kind": "ray",
    "object_store_mb": 100,
    "checkpoint_updates": 20,
    "lease_deadline_s": DEADLINE_S,
    "progress_deadline_s": 5.0,
}
"""A learner host that hangs has to be noticed within half of the lease's deadline."""


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the number of faults and of the results."""
    measured = Report()
    measure_restart(measured, folder / "restart.db", max(round(RESULTS * scale), 10_000))
    report.rows += [row for row in measured.rows if row.name.startswith("restart")]
    with struck_run(folder, RUNTIME) as chaos:
        for _ in range(max(round(KILLS * scale), 2)):
            for target in (ACTOR, LEARNER):
                chaos.strike(Strike(KILL, target, 1.0, 0.0, 0.0))
        hangs = [hang(chaos) for _ in range(max(round(HANGS * scale), 2))]
    for target, bound in ((ACTOR, 3.0), (LEARNER, 15.0)):
        times = chaos.findings.recovery_s.get(f"{KILL} {target}", [])
        if times:
            report.add(f"killed {target}, p95 of {len(times)}", recovery_of(target, times).p95_s, "s", at_most=bound)
    worst = recovery_of(ACTOR, hangs)
    name = f"actor that hangs (deadline {DEADLINE_S:g} s), p95 of {len(hangs)}"
    report.add(name, worst.p95_s, "s", at_most=DEADLINE_S + 5.0)


def hang(chaos: Chaos) -> float:
    """Stop an actor host for good; seconds until a lease granted after that is finished."""
    pid = chaos.pid_of(Strike(STOP, ACTOR, 0.0, 0.0, 0.0))
    begun = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    chaos.await_recovery()
    return time.monotonic() - begun
