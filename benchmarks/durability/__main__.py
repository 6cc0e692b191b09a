"""Measures what runs broken on purpose lose, and how they recover: `python -m benchmarks.durability --json`."""

from __future__ import annotations

import argparse
import importlib
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Report
from benchmarks.rows import add_row_options, chosen_rows, measure_rows

ROWS = {
    "corruption": "benchmarks.durability.corruption:rows",
    "daemon_loop": "benchmarks.durability.daemon_loop:rows",
    "files": "benchmarks.durability.files:rows",
    "kills": "benchmarks.durability.kills:rows",
    "recovery": "benchmarks.durability.recovery:rows",
    "training_time": "benchmarks.durability.training_time:rows",
    "memory": "benchmarks.durability.memory:rows",
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


def measure(name: str, *, scale: float, seed: int, folder: Path) -> Report:
    """The rows of one name."""
    module, _, function = ROWS[name].partition(":")
    rows: Callable[..., None] = getattr(importlib.import_module(module), function)
    report = Report()
    rows(report, scale=scale, seed=seed, folder=folder)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_row_options(parser, ROWS)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full numbers and times")
    parser.add_argument("--seed", type=int, help="of every plan (default: a new one, printed)")
    options = parser.parse_args()
    names = chosen_rows(parser, options, ROWS)
    scale = options.scale
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a script ignores it, and so do runs
    return measure_rows(
        names,
        lambda name, folder: measure(name, scale=scale, seed=seed, folder=folder),
        results=options.results,
        as_json=options.json,
        conditions={"seed": seed, "scale": scale},
    )


if __name__ == "__main__":
    sys.exit(main())
