"""Measures the page, judging, pools, probes and exports: `python -m benchmarks.watch --rows NAME,... --json`.

Each file `rows_NAME.py` beside this one adds its rows by a dictionary `ROWS`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Report, Row
from benchmarks.rows import add_row_options, chosen_rows, measure_rows

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
    add_row_options(parser, known)
    options = parser.parse_args()
    return measure_rows(
        chosen_rows(parser, options, known),
        lambda name, folder: Report(known[name](folder)),
        results=options.results,
        as_json=options.json,
        conditions={},
    )


if __name__ == "__main__":
    sys.exit(main())
