"""Measures the page, judging, pools, probes and exports: `python -m benchmarks.watch --rows NAME,... --json`.

Each file `rows_NAME.py` beside this one adds its rows by a dictionary `ROWS`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Report, Row

Measure = Callable[[Path], list[Row]]


def known_rows() -> dict[str, Measure]:
    """Name -> function that measures in an empty folder."""
    found: dict[str, Measure] = {}
    for path in sorted(Path(__file__).parent.glob("rows_*.py")):
        found |= importlib.import_module(f"benchmarks.watch.{path.stem}").ROWS
    return found


def main() -> int:
    """Measure the rows asked for; returns 1 where one misses its bound."""
    known = known_rows()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(known), help=f"comma-separated: {', '.join(known)}")
    parser.add_argument("--results", type=Path, help="keep the rows of each name here, and skip names that are there")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    names = [name for name in options.rows.split(",") if name]
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no rows {', '.join(unknown)}; there are {', '.join(known)}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    everything = Report()
    for name in names:
        kept = None if options.results is None else options.results / f"{name}.json"
        if kept is not None and kept.exists():
            print(f"{name}: measured before, see {kept}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix=f"league-{name}-", ignore_cleanup_errors=True) as temporary:
            report = Report(known[name](Path(temporary)))
        report.print(sys.stdout, as_json=False)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({"rows": [asdict(row) for row in report.rows]}))
        everything.rows.extend(report.rows)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in everything.rows]}))
    return 1 if everything.failed else 0


if __name__ == "__main__":
    sys.exit(main())
