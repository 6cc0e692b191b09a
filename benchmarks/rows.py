"""Measures rows by name: the options of the command line, and figures kept so that a later call skips them."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Report


def add_row_options(parser: argparse.ArgumentParser, known: Iterable[str]) -> None:
    """Add the options `--rows`, `--results` and `--json`; `chosen_rows` reads the first."""
    known = tuple(known)
    parser.add_argument("--rows", default=",".join(known), help=f"comma-separated: {', '.join(known)}")
    parser.add_argument("--results", type=Path, help="keep the rows of each name here, and skip names that are there")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")


def chosen_rows(parser: argparse.ArgumentParser, options: argparse.Namespace, known: Iterable[str]) -> list[str]:
    """The names that were asked for. Ends the command with a sentence where there is none such."""
    known = tuple(known)
    names = [name for name in options.rows.split(",") if name]
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no rows {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def measure_rows(
    names: Iterable[str],
    measure: Callable[[str, Path], Report],
    *,
    results: Path | None,
    as_json: bool,
    conditions: Mapping[str, object],
) -> int:
    """Measure and print the rows of each name; returns the exit status, 1 where one misses its bound.

    Args:
      measure: makes the report of a name, in an empty folder.
      results: folder of figures that are kept, None for none. conditions: kept beside them.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    everything = Report()
    for name in names:
        kept = None if results is None else results / f"{name}.json"
        if kept is not None and kept.exists():
            print(f"{name}: measured before, see {kept}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix=f"league-{name}-", ignore_cleanup_errors=True) as temporary:
            report = measure(name, Path(temporary))
        report.print(sys.stdout, as_json=False)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({**conditions, "rows": [asdict(row) for row in report.rows]}))
        everything.rows.extend(report.rows)
    if as_json:
        print(json.dumps({"rows": [asdict(row) for row in everything.rows]}))
    return 1 if everything.failed else 0
