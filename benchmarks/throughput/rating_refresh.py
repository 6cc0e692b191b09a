"""Cost of the shown ratings in the daemon's loop: the fraction of its time, and its longest iteration.

    python -m benchmarks.throughput.rating_refresh --snapshots 5000 --json

A turn grants a lease, books its answer and asks for the ratings. "In the loop" rates in that turn every two seconds;
"beside it" is what the daemon does; "not at all" is the machine's own noise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.throughput.league_scale import created, outcomes_of, spread_games
from league.core.metagame.ratings import league_ratings
from league.core.state.commands import FinishLease, RequestLease
from league.core.state.events import LeaseGranted
from league.run.monitor.background_ratings import BackgroundRatings
from league.store.journaled_league import JournaledLeague

EVERY_S = 2.0
RATING_LEASES = 3_000
MAX_SHARE = 0.02


def main() -> int:
    """Run the benchmark; exit 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="end with one JSON line")
    parser.add_argument("--snapshots", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each way")
    options = parser.parse_args()
    report, rng = Report(), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        league = created(Path(folder) / "journal.db", options.snapshots)
        spread_games(league, rng, leases=100)
        for _ in range(RATING_LEASES):
            turn(league, "rate", rng)
        beside = BackgroundRatings(every_s=EVERY_S)
        ways: tuple[tuple[str, Callable[[], object], float | None], ...] = (
            ("not at all", lambda: None, None),
            ("in the loop", every(EVERY_S, lambda: league_ratings(league.state)), None),
            ("beside it", lambda: beside.refresh(league.state), MAX_SHARE),
        )
        for way, show, most in ways:
            share, longest = measure(league, show, rng, seconds=options.seconds)
            what = f"ratings of {options.snapshots:,} snapshots made {way}"
            report.add(f"{what}, share of the loop", share, "of its time", at_most=most)
            report.add(f"{what}, longest turn", 1e3 * longest, "ms")
        league.close()
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


def measure(
    league: JournaledLeague, show: Callable[[], object], rng: np.random.Generator, *, seconds: float
) -> tuple[float, float]:
    """Share of the time that `show` takes in a loop of turns, and the longest turn in seconds."""
    began, shown, longest, number = time.perf_counter(), 0.0, 0.0, 0
    while (started := time.perf_counter()) < began + seconds:
        turn(league, "any" if number % 10 else "rate", rng)
        asked = time.perf_counter()
        show()
        ended = time.perf_counter()
        shown, longest, number = shown + ended - asked, max(longest, ended - started), number + 1
    return shown / (time.perf_counter() - began), longest


def turn(league: JournaledLeague, purpose: str, rng: np.random.Generator) -> None:
    """One lease granted and answered."""
    granted, *_ = league.execute(RequestLease("host", purpose))  # type: ignore[arg-type]
    assert isinstance(granted, LeaseGranted)
    outcomes = tuple(outcomes_of(granted.lease, rng))
    league.execute(FinishLease(granted.lease.lease_id, granted.lease.token, 1_000, outcomes))


def every(seconds: float, job: Callable[[], object]) -> Callable[[], object]:
    """The job, at most once in so many seconds."""
    due = [0.0]

    def show() -> None:
        if time.perf_counter() >= due[0]:
            due[0] = time.perf_counter() + seconds
            job()

    return show


if __name__ == "__main__":
    raise SystemExit(main())
