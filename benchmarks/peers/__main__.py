"""Peers in the same table: League's defaults beside other libraries at equal processor seconds.

Every peer trains in a venv of its own, by one file here through its public API, with a network of the widths that
League's defaults choose. Games are the same, as PettingZoo or Gymnasium envs; League's judge plays every policy.

Open games are judged by their level: the simulations of the search against which a policy scores one half. Small
games with something hidden are judged by exact NashConv, games of one seat by their mean return.

Each cell, a peer's training on a game with a seed, is one file below `--results`; what is there is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.peers import verdict
from benchmarks.peers.cells import Place, cells_of, measure, missing
from benchmarks.peers.games import GAMES
from benchmarks.peers.peer_list import ARMS, NOT_HERE, chosen_arms
from benchmarks.strength.run_to_end import RunFailed
from benchmarks.strength.runs import ROOT


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and print the table; returns the exit status."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    place = Place(options.results.resolve(), options.venvs.resolve())
    cells = cells_of(options.games, chosen_arms(options.peers), options.budgets, options.seeds)
    failures = []
    for cell in [] if options.stored else missing(cells, place):
        try:
            measure(cell, place)
        except (RunFailed, OSError) as error:
            failures.append(f"{cell.name}: {error}")
            print(failures[-1], file=sys.stderr, flush=True)
        else:
            print(f"{cell.name}: {verdict.line_of(cell, place)}", flush=True)
    report = verdict.report_of(cells, place, plays=not options.stored)
    report.print(sys.stdout, as_json=False)
    for name, reason in NOT_HERE.items():
        print(f"{name}: not measured: {reason}")
    for failure in failures:
        print(failure, file=sys.stderr)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in report.rows], "not_measured": dict(NOT_HERE)}))
    return 1 if report.failed or failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), metavar="GAME")
    parser.add_argument("--peers", nargs="+", choices=ARMS, help=f"among {', '.join(ARMS)} (default: all)")
    parser.add_argument("--budgets", nargs="+", type=float, default=[120.0, 600.0], help="core-seconds")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "peers", help="folder of the cells")
    parser.add_argument("--venvs", type=Path, default=ROOT / "runs" / "peers" / "venvs", help="folder of the venvs")
    parser.add_argument("--stored", action="store_true", help="train nothing, show what is there")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
