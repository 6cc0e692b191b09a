"""Peers in the same table: League's defaults beside other libraries at equal processor seconds.

Every peer trains in a venv of its own, by one file here through its public API, with a network of the widths that
League's defaults choose. Games are the same, as PettingZoo or Gymnasium envs; League's judge plays every policy.
A peer has the processor seconds of the whole process tree of League's run of that game, budget and seed.

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
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from benchmarks.peers import verdict
from benchmarks.peers.cells import Cell, Place, cells_of, measure, missing
from benchmarks.peers.games import GAMES
from benchmarks.peers.peer_list import ARMS, LEAGUE, NOT_HERE, PEERS, chosen_arms, venv_of
from benchmarks.strength.runs import ROOT
from league.processes.child_process import end_with_parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and print the table; returns the exit status."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    place = Place(options.results.resolve(), options.venvs.resolve())
    cells = cells_of(options.games, chosen_arms(options.peers), options.budgets, options.seeds)
    failures = [] if options.stored else find_all(missing(cells, place), place, jobs=options.jobs)
    report = verdict.report_of(cells, place, plays=not options.stored)
    report.print(sys.stdout, as_json=False)
    for name, reason in NOT_HERE.items():
        print(f"{name}: not measured: {reason}")
    for failure in failures:
        print(failure, file=sys.stderr)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in report.rows], "not_measured": dict(NOT_HERE)}))
    return 1 if report.failed or failures else 0


def find_all(cells: Sequence[Cell], place: Place, *, jobs: int) -> list[str]:
    """Measure cells, those of League first, whose seconds the peers then have; returns a sentence for each failure."""
    failures = []
    for peer in sorted({cell.peer for cell in cells} & set(PEERS)):
        venv_of(peer, place.venvs)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        for wave in ([cell for cell in cells if cell.peer == LEAGUE], [cell for cell in cells if cell.peer != LEAGUE]):
            started: dict[Future[None], Cell] = {pool.submit(measure, cell, place): cell for cell in wave}
            for future in as_completed(started):
                cell, error = started[future], future.exception()
                line = verdict.line_of(cell, place) if error is None else f"{type(error).__name__}: {error}"
                print(f"{cell.name}: {line}", flush=True)
                failures += [] if error is None else [f"{cell.name}: {line}"]
    return failures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), metavar="GAME")
    parser.add_argument("--peers", nargs="+", choices=ARMS, help=f"among {', '.join(ARMS)} (default: all)")
    parser.add_argument("--budgets", nargs="+", type=float, default=[120.0, 600.0], help="core-seconds")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "peers", help="folder of the cells")
    parser.add_argument("--venvs", type=Path, default=ROOT / "runs" / "peers" / "venvs", help="folder of the venvs")
    parser.add_argument("--stored", action="store_true", help="train nothing, show what is there")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
