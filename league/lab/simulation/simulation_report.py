"""Report of a simulated run: snapshots, gates, resets, games per pair, starved pairs, disk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from league.core.diagnosis import hungry_opponents
from league.core.gates.gates import GATE, TIMEOUT
from league.core.state.scoring import Scoring
from league.core.state.state import LeagueState
from league.json_report import JsonReport
from league.store.journal_segments import PLAIN_EVENTS
from league.text_table import TextTable

JOURNAL_ROW_BYTES = 120
"""Bytes per event beside its body: chain hash, number, time and index."""
PACKED_SHARE = 0.12
"""Of its body that an event takes in a segment: measured, see `benchmarks/durability/disk_use.py`."""
MAX_SHOWN = 5
DAY_S, HOUR_S = 86_400.0, 3_600.0


@dataclass(frozen=True)
class Pace:
    """Speed assumptions of a simulated run.

    Fields:
      steps_per_s: env steps of one actor host. decisions_per_game: env steps of one game.
      hosts: actor hosts. lease_steps: env steps of a simulated lease. snapshot_bytes: of one frozen policy on disk.
      most_snapshots: that may be kept. metrics_bytes: limit of the metrics and of those that wait for their upload.
    """

    steps_per_s: float
    decisions_per_game: int
    hosts: int
    lease_steps: int
    snapshot_bytes: int
    most_snapshots: int = 1_000_000
    metrics_bytes: int = 0


@dataclass
class OutcomeTotals:
    """Running totals of a simulation.

    Fields:
      reasons: (player, reason) of its snapshots. resets, transplants: of each player. mixtures: that were solved.
      events: in the journal. encoded: those of them that were encoded, and encoded_bytes what they took.
    """

    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    resets: Counter[str] = field(default_factory=Counter)
    transplants: Counter[str] = field(default_factory=Counter)
    mixtures: int = 0
    events: int = 0
    encoded: int = 0
    encoded_bytes: int = 0


@dataclass(frozen=True)
class SimulatedPlayer:
    """One player. gate, timeout: snapshots by their reason; starved: opponents with too few games for its gate."""

    player: str
    role: str
    trained_steps: int
    games: int
    snapshots: int
    gate: int
    timeout: int
    resets: int
    transplants: int
    gate_opponents: int
    starved: int


@dataclass(frozen=True)
class SimulationReport(JsonReport):
    """The outcome predicted for a configuration.

    Fields:
      asked_s, done_s: virtual seconds asked for and simulated; fewer where there were too many snapshots.
      real_s, speed: real seconds, and virtual seconds in one of them.
      world: of the simulated learners. lease_steps: env steps of a simulated lease.
      counts: what the games of the real run would count by; simulated games are won, drawn or lost.
      games, env_steps, rating_games, snapshots, mixtures: totals.
      pairs: pairs that have met. games_per_pair: 5 %, 50 % and 95 % of their games.
      starved: (player, opponent, effective games) of the least known opponents of gates.
      snapshots_kept: snapshots whose weights are still there at the end.
      snapshot_bytes, journal_bytes: on disk, within the limits of `retention` and with old events compressed.
      metrics_bytes: what metrics, and those that wait for their upload, take at most.
    """

    asked_s: float
    done_s: float
    real_s: float
    speed: float
    world: str
    lease_steps: int
    games: int
    env_steps: int
    rating_games: int
    snapshots: int
    mixtures: int
    players: tuple[SimulatedPlayer, ...]
    pairs: int
    games_per_pair: tuple[float, float, float]
    starved: tuple[tuple[str, str, float], ...]
    snapshot_bytes: int
    journal_bytes: int
    counts: Scoring
    snapshots_kept: int = 0
    metrics_bytes: int = 0

    def text(self) -> str:
        days = max(self.done_s / DAY_S, 1e-9)
        low, middle, high = self.games_per_pair
        lines = [
            f"{span(self.done_s)} of league time in {self.real_s:.1f} s ({self.speed:,.0f}x), simulated learners: "
            f"{self.world}, {self.lease_steps:,} env steps a lease"
        ]
        if self.done_s < self.asked_s:
            lines.append(
                f"ended before {span(self.asked_s)}: {self.snapshots:,} snapshots are too many; raise min_steps"
            )
        if self.counts.score == "returns":
            lines.append(
                f"the real run counts {self.counts.text}: simulated games are won or lost outright, so that its win "
                "rates lie nearer to a half than these, and its gates fire later"
            )
        lines += [
            f"{self.env_steps:,} env steps, {self.games:,} games, {self.rating_games:,} of them rating games",
            f"{self.snapshots:,} snapshots ({self.snapshots / days:,.1f} a day), {self.mixtures} mixtures solved",
            f"disk: {size(self.snapshot_bytes)} of {self.snapshots_kept:,} snapshots that are kept, "
            f"{size(self.journal_bytes)} of journal, at most {size(self.metrics_bytes)} of metrics",
            f"{self.pairs:,} pairs met; games of a pair: {low:,.0f} (5 %), {middle:,.0f} (median), {high:,.0f} (95 %)",
        ]
        heads = ("player", "trained steps", "snapshots", "gate", "timeout", "resets", "copies", "starved opponents")
        rows = []
        for row in self.players:
            counts = (row.trained_steps, row.snapshots, row.gate, row.timeout, row.resets, row.transplants)
            rows.append((row.player, *counts, f"{row.starved:,} of {row.gate_opponents:,}"))
        lines += TextTable(heads, rows, forms=("", *[","] * 6)).lines()
        lines += [
            f"starved: {player} against {opponent}, {games:.1f} games" for player, opponent, games in self.starved
        ]
        return "\n".join(lines)


def report_on(
    state: LeagueState,
    totals: OutcomeTotals,
    pace: Pace,
    *,
    asked_s: float,
    done_s: float,
    world: str,
    real_s: float,
    counts: Scoring,
) -> SimulationReport:
    """The report on a league that was simulated. counts: see `SimulationReport`."""
    players, starved = [], []
    for name, player in state.players.items():
        hungry, gate_opponents = hungry_opponents(state, name)
        starved += [(name, opponent, games) for opponent, games in hungry]
        players.append(
            SimulatedPlayer(
                name,
                player.role,
                player.trained_steps,
                player.games,
                player.num_snapshots,
                gate=totals.reasons[name, GATE],
                timeout=totals.reasons[name, TIMEOUT],
                resets=totals.resets[name],
                transplants=totals.transplants[name],
                gate_opponents=gate_opponents,
                starved=len(hungry),
            )
        )
    payoff = state.payoff
    once = payoff.home < payoff.away
    met = payoff.totals[once].sum(axis=(1, 2))
    body = totals.encoded_bytes / max(totals.encoded, 1)
    single = min(totals.events, PLAIN_EVENTS)
    kept = len(state.population.snapshots())
    return SimulationReport(
        asked_s=asked_s,
        done_s=min(done_s, asked_s),
        real_s=real_s,
        speed=done_s / max(real_s, 1e-9),
        world=world,
        lease_steps=pace.lease_steps,
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        rating_games=state.totals.rating_games,
        snapshots=len(state.snapshots),
        mixtures=totals.mixtures,
        players=tuple(players),
        pairs=len(met),
        games_per_pair=quantiles(met),
        starved=tuple(sorted(starved, key=lambda row: row[2])[:MAX_SHOWN]),
        snapshot_bytes=kept * pace.snapshot_bytes,
        journal_bytes=round(single * (body + JOURNAL_ROW_BYTES) + (totals.events - single) * body * PACKED_SHARE),
        counts=counts,
        snapshots_kept=kept,
        metrics_bytes=pace.metrics_bytes,
    )


def quantiles(games: np.ndarray) -> tuple[float, float, float]:
    """5 %, 50 % and 95 %; zeros of nothing."""
    if not len(games):
        return 0.0, 0.0, 0.0
    low, middle, high = np.quantile(games, [0.05, 0.5, 0.95]).tolist()
    return low, middle, high


def span(seconds: float) -> str:
    """A time for people."""
    if seconds >= DAY_S:
        return f"{seconds / DAY_S:.1f} days"
    return f"{seconds / HOUR_S:.1f} hours" if seconds >= HOUR_S else f"{seconds / 60.0:.1f} minutes"


def size(num_bytes: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if num_bytes < 1024.0:
            return f"{num_bytes:,.1f} {unit}"
        num_bytes /= 1024.0
    return f"{num_bytes:,.1f} TiB"
