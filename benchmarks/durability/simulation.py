"""Deterministic simulation: the production daemon and journal over simulated hosts, under faults drawn from seeds.

Requests and answers are lost, doubled, late and out of order, hosts die, clocks jump and the disk
fails. Operators ask for changes, and the daemon dies between any two steps. After every turn an outside reader holds
the league against its journal. A failure prints the schedule that replays it, made smaller first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.durability.simulated.run import Ran, run_schedule
from benchmarks.durability.simulated.schedule import Schedule, replay_text, shrunk
from benchmarks.report import Report

MEMORY = Path("/dev/shm")
"""Folder in memory: a kill of the process is simulated here, and no loss of power, so that a disk would only wait."""
MAX_FAILURES = 5
SAY_EVERY = 1_000


@dataclass
class Totals:
    """Sums over schedules."""

    schedules: int = 0
    deaths: int = 0
    events: int = 0
    turns: int = 0

    def add(self, ran: Ran) -> None:
        """Count one that held."""
        self.schedules += 1
        self.deaths += ran.deaths
        self.events += ran.events
        self.turns += ran.turns


def problem_of(schedule: Schedule, totals: Totals | None = None) -> str:
    """Run a schedule in a folder of its own; one line if a rule was broken, else empty."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        try:
            ran = run_schedule(schedule, Path(folder))
        except Exception as error:  # boundary: whatever a schedule raises is its finding
            return f"{type(error).__name__}: {str(error) or repr(error)}"[:500]
    if totals is not None:
        totals.add(ran)
    return ""


def run_many(first: int, count: int, *, say: Callable[[str], object]) -> tuple[Totals, list[str]]:
    """Run the schedules of `count` seeds; returns the sums and a line for each failure, at most `MAX_FAILURES`."""
    totals, failures = Totals(), []
    for seed in range(first, first + count):
        schedule = Schedule.of_seed(seed)
        problem = problem_of(schedule, totals)
        if problem:
            smaller = shrunk(schedule, lambda plan: bool(problem_of(plan)))
            failures.append(f"{problem_of(smaller) or problem}\n  replay: --schedule '{replay_text(smaller)}'")
            say(failures[-1])
            if len(failures) >= MAX_FAILURES:
                break
        if (seed - first + 1) % SAY_EVERY == 0:
            say(f"{seed - first + 1:,} schedules, {len(failures)} failures")
    return totals, failures


def report_of(totals: Totals, failures: list[str], *, asked: int, seconds: float) -> Report:
    """The rows of the report."""
    report = Report()
    report.add("schedules that held", totals.schedules, "schedules", at_least=asked)
    report.add("schedules that broke a rule", len(failures), "schedules", at_most=0)
    report.add("deaths of the daemon", totals.deaths, "deaths", at_least=1)
    report.add("turns of its loop", totals.turns, "turns")
    report.add("events", totals.events, "events")
    report.add("processor time of a schedule", seconds / max(totals.schedules, 1), "s")
    return report


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Adds the rows of a hundred thousand schedules at scale 1."""
    asked = max(round(100_000 * scale), 10)
    began = time.process_time()
    totals, failures = run_many(seed * asked, asked, say=lambda line: print(line, file=sys.stderr))
    report.rows += report_of(totals, failures, asked=asked, seconds=time.process_time() - began).rows


def main(arguments: list[str] | None = None) -> int:
    """Run schedules, or replay one; prints rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=500, help="number of seeds, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--schedule", help="one schedule as printed by a failure: the error is raised")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.schedule:
        plain = yaml.safe_load(options.schedule)
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()
        }
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            print(run_schedule(Schedule(**given), Path(folder)))
        return 0
    began = time.process_time()
    totals, failures = run_many(options.first, options.schedules, say=lambda line: print(line, file=sys.stderr))
    seconds = time.process_time() - began
    report = report_of(totals, failures, asked=options.schedules, seconds=seconds)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
