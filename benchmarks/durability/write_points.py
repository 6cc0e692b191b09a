"""Rows of the fault points: every writer of a run under every fault at every point, as the tests have it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Report
from league.store.storage import FAULT_POINTS

ROOT = Path(__file__).parents[2]
TESTS = "tests/league/store/test_fault_points.py"
DEADLINE_S = 600.0


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Adds the rows. Neither seed nor scale: all of them, each time."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=DEADLINE_S, check=False)
    counted = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", ran.stdout)}
    dots = sum(line.count(".") for line in ran.stdout.splitlines() if re.fullmatch(r"[.FE]+ +\[ *\d+%\]", line))
    report.add("named fault points", len(FAULT_POINTS), "points")
    report.add("writers and faults that were tried at every point", counted.get("passed", dots), "pairs", at_least=1)
    report.add("of these that lost or tore something", 0 if ran.returncode == 0 else 1, "pairs", at_most=0)
