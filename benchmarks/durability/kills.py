"""200 SIGKILLs over daemon, actors, learners and Ray's head: what is lost, counted twice or left; how it recovers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.durability.struck import add_books, run_words
from benchmarks.report import Report
from league.operate.chaos.chaos import Chaos, run_chaos
from league.operate.chaos.plan import KILL, StrikePlan
from league.operate.chaos.prepare import prepare
from league.operate.chaos.verdict import ChaosVerdict

KILLS = 200
REQUIRED_S = {"kill actor": 3.0, "kill learner": 15.0}
"""Fault -> 95 % of its recoveries take at most so long."""


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the full number of kills."""
    number = max(round(KILLS * scale), 1)
    prepared = prepare(Path(run_words(folder)[1]), folder / "run", overrides=[])
    chaos = Chaos(prepared.run, first=prepared.first, folder=folder)
    plan = StrikePlan(seed, kinds=(KILL,), targets=prepared.targets)
    add_rows(report, run_chaos(chaos, plan, seed=seed, strikes=number, say=print), number=number)


def add_rows(report: Report, verdict: ChaosVerdict, *, number: int) -> None:
    """The rows of a verdict."""
    report.add("SIGKILLs over daemon, actors, learners, Ray's head", sum(verdict.strikes.values()), "", at_least=number)
    report.add("finished leases seen by an outside reader", verdict.leases_seen, "leases", at_least=1)
    add_books(report, lost=verdict.lost, doubled=verdict.doubled, off=verdict.off, problems=verdict.problems)
    report.add("things left 10 s after the end of a daemon", len(verdict.left), "things", at_most=0)
    report.add("daemons that ended unasked", len(verdict.left_early), "daemons", at_most=0)
    report.add("runs broken off", float(bool(verdict.failure)), "runs", at_most=0)
    for row in verdict.recoveries:
        name = f"{row.fault} to the next finished training lease, p95 of {row.number}"
        report.add(name, row.p95_s, "s", at_most=REQUIRED_S.get(row.fault))
