"""Cost of the league's bookkeeping as it grows: lease decisions, results, ratings, restarts, memory and disk.

    python -m benchmarks.throughput.league_scale --json

A result is the total of one assignment under one lease; a lease brings ten. "Players" are learning players, each with a
snapshot, so that the population is twice as many. What must be durable and a restart are timed by the clock; everything
else in processor time, since what else runs on the machine is no cost of it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from league.core.league import decide
from league.core.metagame.ratings import league_ratings
from league.core.state.commands import (
    ConfirmSnapshot,
    CreateLeague,
    FinishLease,
    ReportProgress,
    RequestLease,
    StartRun,
)
from league.core.state.events import EVENTS, LeaseGranted
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.core.state.records import AssignmentOutcome, Lease, Progress
from league.core.state.state import digest
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague, read_state

PLAYERS = (10, 100, 1_000, 10_000)
GAMES = 20
DECISIONS = 500
COMMIT_EVERY = 32
"""Lease answers made durable together, as the daemon does with what one turn of its loop brings."""


def main() -> int:
    """Run the benchmark; exit 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="end with one JSON line")
    parser.add_argument("--results", type=int, default=1_000_000, help="results in the journal of the restart")
    parser.add_argument("--players", type=int, nargs="*", default=list(PLAYERS))
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        measure_restart(report, Path(folder) / "restart.db", options.results)  # first, while memory shows its growth
        for players in options.players:
            measure(report, Path(folder) / f"{players}.db", players)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


def measure(report: Report, path: Path, players: int) -> None:
    """Rows for one size."""
    rng = np.random.default_rng(0)
    league = created(path, players)
    spread_games(league, rng, leases=min(2 * players, 2_000))
    decisions = timed(DECISIONS, lambda: decide(league.state, RequestLease("host"), rng))
    report.add(f"lease decision, {players:,} players, median", 1e3 * float(np.median(decisions)), "ms")
    report.add(
        f"lease decision, {players:,} players, p99", 1e3 * float(np.quantile(decisions, 0.99)), "ms", at_most=2.0
    )
    leases = min(max(players, 500), 2_000)
    before, rss = path_bytes(path), rss_bytes()
    started, busy = time.perf_counter(), time.process_time()
    answered = answer_leases(league, rng, leases)
    took, busy = time.perf_counter() - started, time.process_time() - busy
    report.add(
        f"results granted, recorded and durable, {players:,} players", answered / took, "results/s", at_least=5_000
    )
    report.add(f"the same per core-second, {players:,} players", answered / busy, "results/core-s")
    report.add(f"lease answers granted, recorded and durable, {players:,} players", leases / took, "leases/s")
    report.add(f"journal growth, {players:,} players", (path_bytes(path) - before) / answered, "bytes/result")
    report.add(f"memory growth, {players:,} players", max(rss_bytes() - rss, 0) / answered, "bytes/result")
    (refresh,) = timed(1, lambda: league_ratings(league.state))
    report.add(f"rating refresh, {players:,} players", refresh, "s")
    (plain,) = timed(1, league.save_state)
    report.add(f"storing the state, {players:,} players", plain, "s")
    league.close()


def measure_restart(report: Report, path: Path, results: int) -> None:
    """Time from a journal on disk to the state, and that the state is the same."""
    rng = np.random.default_rng(1)
    league = created(path, 100)
    before, rss = path_bytes(path), rss_bytes()
    answered, started = 0, time.perf_counter()
    while answered < results:
        answered += answer_leases(league, rng, 1_000)
    took = time.perf_counter() - started
    report.add(f"mean rate over {answered:,} results, 100 players", answered / took, "results/s", at_least=5_000)
    report.add(f"file growth over {answered:,} results", (path_bytes(path) - before) / answered, "bytes/result")
    report.add(f"memory growth over {answered:,} results", max(rss_bytes() - rss, 0) / answered, "bytes/result")
    expected = digest(league.state)
    league.close()
    started = time.perf_counter()
    with JournalReader.open_readonly(path, events=EVENTS) as journal:
        state = read_state(journal)
        events = journal.head().seq
    took = time.perf_counter() - started
    assert digest(state) == expected, "the restarted state differs"
    report.add(f"restart from {answered:,} results", took, "s", at_most=2.0)
    report.add(f"journal of {answered:,} results, {events:,} events", path_bytes(path) / 2**20, "MiB")


def created(path: Path, players: int) -> JournaledLeague:
    """A league of three roles with a first snapshot each."""
    counts = (players - 2 * (players // 3), players // 3, players // 3)
    groups = tuple(
        PlayerConfig(role=role, count=count, opponents_per_lease=5)
        for role, count in zip(("main_agent", "main_exploiter", "league_exploiter"), counts, strict=True)
    )
    league = JournaledLeague.create(path, wall_time=lambda: 0.0)
    league.execute(CreateLeague(0, 2, (0, 1), LeagueConfig(players=groups)))
    league.execute(StartRun())
    for directive in list(league.state.directives.values()):
        league.execute(ConfirmSnapshot(directive.directive_id, "0" * 64, 0, 0))
    league.commit()
    return league


def spread_games(league: JournaledLeague, rng: np.random.Generator, *, leases: int) -> None:
    """A league under way: games, progress past the point from which gates are judged."""
    for name in list(league.state.players):
        league.execute(ReportProgress(Progress(name, 1, 1_100_000)))
    answer_leases(league, rng, leases)


def answer_leases(league: JournaledLeague, rng: np.random.Generator, leases: int) -> int:
    """Grant and answer so many leases, durable in groups; returns the number of results."""
    results = 0
    for number in range(leases):
        granted, *_ = league.execute(RequestLease("host"))
        assert isinstance(granted, LeaseGranted)
        outcomes = tuple(outcomes_of(granted.lease, rng))
        results += len(outcomes)
        league.execute(FinishLease(granted.lease.lease_id, granted.lease.token, 1_000, outcomes))
        if number % COMMIT_EVERY == COMMIT_EVERY - 1:
            league.commit()
    league.commit()
    return results


def outcomes_of(lease: Lease, rng: np.random.Generator) -> list[AssignmentOutcome]:
    """Even games of every assignment."""
    found = []
    for assignment, won in zip(
        lease.assignments, rng.binomial(GAMES, 0.5, len(lease.assignments)).tolist(), strict=True
    ):
        wins = ((0, won), (GAMES - won, 0))
        found.append(AssignmentOutcome(assignment.policies, GAMES, 0, 10 * GAMES, wins, ((0, 0), (0, 0)), (0.0, 0.0)))
    return found


def timed(times: int, call: Callable[[], object]) -> list[float]:
    """Processor seconds of each call."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return seconds


def path_bytes(path: Path) -> int:
    """Size of a database with its log."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def rss_bytes() -> int:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
