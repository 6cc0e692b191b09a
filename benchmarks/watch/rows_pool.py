"""Ratings of a pool against known strengths, its speed at a thousand policies, and its schedules of faults."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import Report, Row
from benchmarks.watch.known_strengths import KnownGame, known_pool, play_known
from benchmarks.watch.simulated_pool import run_schedules
from league.judge.pools.core.events import BatchFinished, BatchGranted
from league.judge.pools.core.fit import fit_pool, games_of
from league.judge.pools.core.records import BatchLease
from league.judge.pools.core.schedule import Scheduler
from league.judge.pools.core.state import PoolState, apply

POOLS, POLICIES, BATCHES = 200, 24, 250
LARGE, LARGE_BATCHES = 1_000, 20_000
DECISIONS, FITS = 30, 5
SCHEDULES, STEPS = 500, 120


@dataclass(frozen=True)
class Known:
    """A kind of pool: how strengths are drawn, the game, and whether the pairs are scheduled or drawn."""

    name: str
    strengths: Callable[[np.random.Generator], np.ndarray]
    game: KnownGame
    anchors: int = 1


def uniform(rng: np.random.Generator) -> np.ndarray:
    """Strengths between 200 Elo below and 1,200 above the anchor, which is the first."""
    return np.concatenate([[0.0], rng.uniform(-200.0, 1200.0, POLICIES - 1)])


def two_crowds(rng: np.random.Generator) -> np.ndarray:
    """Weak and strong policies, with nobody between them: nothing like the normal prior."""
    low = rng.normal(100.0, 60.0, POLICIES // 2 - 1)
    return np.concatenate([[0.0], low, rng.normal(900.0, 60.0, POLICIES // 2)])


KNOWN = (
    Known("no draws", uniform, KnownGame()),
    Known("30 % draws between equals", uniform, KnownGame(draws=0.3)),
    Known("draws, and openings that favour a side", uniform, KnownGame(draws=0.3, opening=0.8)),
    Known("two crowds, draws", two_crowds, KnownGame(draws=0.3)),
    Known("three anchors, draws", uniform, KnownGame(draws=0.3), anchors=3),
)


def coverage(folder: Path) -> list[Row]:
    """Part of the 95 % intervals that hold the known strength, over pools whose pairs the scheduler chose."""
    report = Report()
    for kind, known in enumerate(KNOWN):
        inside, widths, off = [], [], []
        for number in range(POOLS):
            rng = np.random.default_rng([11, kind, number])
            strengths = known.strengths(rng)
            state = known_pool(strengths, {index: float(strengths[index]) for index in range(known.anchors)})
            elo, low, high = play_known(state, strengths, known.game, rng, batches=BATCHES).elo()
            rated = slice(known.anchors, None)
            inside.append(float(((low <= strengths) & (strengths <= high))[rated].mean()))
            widths.append(float(np.median((high - low)[rated])))
            off.append(float((elo - strengths)[rated].mean()))
        share = 100.0 * float(np.mean(inside))
        error = 100.0 * float(np.std(inside)) / np.sqrt(POOLS)
        size = f"{POOLS} pools of {POLICIES} policies, {BATCHES} batches of 8 games; {known.name}"
        report.add(f"coverage of 95 % intervals, at least: {size}", share, "%", at_least=93.0)
        report.add(f"coverage of 95 % intervals, at most: {size}", share, "%", at_most=97.0)
        report.add(f"its standard error over pools: {known.name}", error, "points")
        report.add(f"median width of an interval: {known.name}", float(np.median(widths)), "Elo")
        report.add(f"mean error of a rating: {known.name}", float(np.mean(off)), "Elo")
    return report.rows


def large(folder: Path) -> list[Row]:
    """Times of a pool of a thousand policies: a scheduling decision, a rating step and the first rating."""
    report = Report()
    rng = np.random.default_rng(2)
    strengths = np.concatenate([[0.0], rng.normal(700.0, 350.0, LARGE - 1)])
    state = known_pool(strengths, {0: 0.0})
    for number in range(LARGE_BATCHES):
        home = number % LARGE
        # Pairs that were chosen by their true strengths would tell more than their games do.
        away = int(rng.integers(LARGE))
        if away != home:
            _play(state, strengths, home, away, rng)
    size = f"{LARGE:,} policies, {len(state.pairs):,} pairs, {state.finished * 8:,} games"
    begun = time.process_time()
    fit = fit_pool(games_of(state))
    report.add(f"first rating: {size}", time.process_time() - begun, "s")
    steps = []
    for _ in range(FITS):
        for _ in range(8):
            home, away = (int(index) for index in rng.choice(LARGE, 2, replace=False))
            _play(state, strengths, home, away, rng)
        begun = time.process_time()
        fit = fit_pool(games_of(state), start=fit)
        steps.append(time.process_time() - begun)
    report.add(f"rating step after 8 more batches: {size}", float(np.median(steps)), "s", at_most=1.0)
    scheduler, times = Scheduler(state, fit), []
    for _ in range(DECISIONS):
        begun = time.process_time()
        batch = scheduler.next_batch(state.leases)
        times.append(time.process_time() - begun)
        assert batch is not None
        apply(state, BatchGranted(_lease(state, batch.home, batch.away, batch.games)))
    report.add(f"scheduling decision: {size}", 1e3 * float(np.median(times)), "ms", at_most=200.0)
    _, low, high = fit.elo()
    held = ((low <= strengths) & (strengths <= high))[1:]
    report.add(f"part of the intervals that hold the strength, one pool: {size}", 100.0 * float(held.mean()), "%")
    return report.rows


def exactly_once(folder: Path) -> list[Row]:
    """Schedules of lost, doubled and late messages, deaths and full disks; each raises if a rule is broken."""
    report = Report()
    begun = time.process_time()
    broken = 0
    totals = [0, 0, 0, 0]
    for seed in range(SCHEDULES):
        try:
            found = run_schedules(range(seed, seed + 1), steps=STEPS)
        except AssertionError as error:
            broken += 1
            print(f"seed {seed}: {error}")
            continue
        ran = (found.counted, found.deaths, found.refused, found.full_disks)
        totals = [total + more for total, more in zip(totals, ran, strict=True)]
    report.add(f"schedules of {SCHEDULES} in which an answer was lost or counted twice", broken, "schedules", at_most=0)
    for name, total in zip(("answers counted", "deaths", "late or doubled answers", "full disks"), totals, strict=True):
        report.add(f"{name} in them", total, "", at_least=1)
    report.add("processor time of a schedule", (time.process_time() - begun) / SCHEDULES, "s")
    return report.rows


def _play(state: PoolState, strengths: np.ndarray, home: int, away: int, rng: np.random.Generator) -> None:
    lease = _lease(state, home, away, 8)
    apply(state, BatchGranted(lease))
    result = KnownGame(draws=0.3).play(float(strengths[home] - strengths[away]), 8, rng)
    apply(state, BatchFinished(lease.lease_id, "", result))


def _lease(state: PoolState, home: int, away: int, games: int) -> BatchLease:
    return BatchLease(state.next_lease_id, "", "", home, away, games, 1.0)


ROWS: dict[str, Callable[[Path], list[Row]]] = {
    "pool_coverage": coverage,
    "pool_large": large,
    "pool_exactly_once": exactly_once,
}
