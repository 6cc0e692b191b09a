"""Measures what runs broken on purpose lose, and how they recover: `python -m benchmarks.durability --json`."""

from __future__ import annotations

import argparse
import importlib
import json
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Report

ROWS = {
    "corruption": "benchmarks.durability.corruption:rows",
    "daemon_loop": "benchmarks.durability.daemon_loop:rows",
    "files": "benchmarks.durability.files:rows",
    "kills": "benchmarks.durability.kills:rows",
    "recovery": "benchmarks.durability.recovery:rows",
    "training_time": "benchmarks.durability.training_time:rows",
    "left_by_sigint": "benchmarks.durability.leftovers:sigint",
    "left_by_two_sigints": "benchmarks.durability.leftovers:two_sigints",
    "left_by_sigterm": "benchmarks.durability.leftovers:sigterm",
    "left_by_sigkill": "benchmarks.durability.leftovers:sigkill",
    "soak": "benchmarks.durability.soak:rows",
    "security": "benchmarks.durability.security:rows",
    "black_hole": "benchmarks.durability.black_hole:rows",
    "simulated_soak": "benchmarks.durability.simulated_soak:rows",
    "simulation": "benchmarks.durability.simulation:rows",
    "write_points": "benchmarks.durability.write_points:rows",
}
"""Name -> function that adds rows to a report: (report, *, scale, seed, folder)."""


def measure(name: str, report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows of one name."""
    module, _, function = ROWS[name].partition(":")
    rows: Callable[..., None] = getattr(importlib.import_module(module), function)
    folder.mkdir(parents=True, exist_ok=True)
    rows(report, scale=scale, seed=seed, folder=folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"comma-separated: {', '.join(ROWS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full numbers and times")
    parser.add_argument("--seed", type=int, help="of every plan (default: a new one, printed)")
    parser.add_argument("--results", type=Path, help="keep the rows of each name here, and skip names that are there")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    names = [name for name in options.rows.split(",") if name]
    if unknown := sorted(set(names) - set(ROWS)):
        parser.error(f"no rows {', '.join(unknown)}; there are {', '.join(ROWS)}")
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a script ignores it, and so do runs
    everything = Report()
    for name in names:
        kept = None if options.results is None else options.results / f"{name}.json"
        if kept is not None and kept.exists():
            print(f"{name}: measured before, see {kept}", flush=True)
            continue
        report = Report()
        with tempfile.TemporaryDirectory(prefix=f"league-{name}-", ignore_cleanup_errors=True) as temporary:
            measure(name, report, scale=options.scale, seed=seed, folder=Path(temporary))
        report.print(sys.stdout, as_json=False)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(
                json.dumps({"seed": seed, "scale": options.scale, "rows": [asdict(r) for r in report.rows]})
            )
        everything.rows.extend(report.rows)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in everything.rows]}))
    return 1 if everything.failed else 0


if __name__ == "__main__":
    sys.exit(main())
