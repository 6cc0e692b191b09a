"""The systems of the lineage beside their known answers, their own floor and each other.

Every part is a file beside this one. With `--results DIR` the rows of a part are kept, and a later call measures only
the parts that are missing.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import Report
from benchmarks.rows import measure_rows

PARTS: Mapping[str, str] = {
    "a2c": "benchmarks.lineage.a2c:report",
    "actor_hosts": "benchmarks.lineage.actor_hosts:actor_hosts",
    "modes": "benchmarks.lineage.modes:bytes_sent",
    "modes_kuhn": "benchmarks.lineage.modes:kuhn",
    "free_modes": "benchmarks.lineage.free_modes:free_modes",
    "ray_groups": "benchmarks.lineage.ray_groups:ray_groups",
    "peers": "benchmarks.lineage.peers:peers",
    "q_learning": "benchmarks.lineage.q_learning:q_learning",
    "replay": "benchmarks.lineage.replay:report",
    "replay_kills": "benchmarks.lineage.replay_kills:replay_kills",
    "search": "benchmarks.lineage.search:search_rows",
    "evolution": "benchmarks.lineage.evolution:evolution",
}
"""Name -> "module:function" that makes the report of a part in an empty folder."""


def measure(name: str, folder: Path) -> Report:
    """The rows of one part."""
    module, function = PARTS[name].split(":")
    report: Report = getattr(importlib.import_module(module), function)(folder)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lineage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=sorted(PARTS), default=sorted(PARTS), help="parts to measure")
    parser.add_argument("--results", type=Path, help="keep the rows of each part here, and skip parts that are there")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args(arguments)
    return measure_rows(options.only, measure, results=options.results, as_json=options.json, conditions={})


if __name__ == "__main__":
    sys.exit(main())
