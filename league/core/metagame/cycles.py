"""Measures intransitivity: how cyclic a table of win rates is, and which policies beat each other in a ring.

Shape letter: N policies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.meta_game import snapshot_win_rates
from league.core.metagame.ratings import INTERVAL_Z, frozen_pairs
from league.core.state.state import LeagueState

Array = NDArray[np.float64]

MAX_POLICIES = 128
MISLEADING_FRACTION = 0.25
"""Cyclic fraction above which a single rating misleads."""


@dataclass(frozen=True)
class CycleReport:
    """The part of a table of win rates that one number per policy cannot express.

    Fields:
      policies: how many were compared.
      cyclic_fraction: part of the squared log-odds of the whole table that no rating can express, in [0, 1].
      num_cycles: triples in which each clearly beats the next. ring: size of the largest set in which everyone clearly
        beats everyone else by some chain; 1 where there is none.
      strongest: the triple whose weakest link is strongest, its win rates in turn; empty without one.
    """

    policies: int
    cyclic_fraction: float
    num_cycles: int
    ring: int
    strongest: tuple[tuple[str, float], ...]

    def text(self) -> str:
        """One sentence."""
        ring = ", ".join(f"{policy} ({rate:.2f})" for policy, rate in self.strongest)
        plural = "" if self.num_cycles == 1 else "s"
        found = f"{self.num_cycles:,} sure cycle{plural} of three, {self.cyclic_fraction:.0%} of the table is cyclic"
        return f"{found}; {ring}" if ring else found

    @property
    def misleads(self) -> bool:
        """True if one number per policy misleads: much of the table is cyclic, or some cycles are certain."""
        return self.cyclic_fraction > MISLEADING_FRACTION or self.num_cycles > 0


def league_cycles(state: LeagueState) -> CycleReport | None:
    """The cycles among the newest snapshots of a league; None where fewer than three can be compared."""
    names = [name for name, snapshot in state.snapshots.items() if snapshot.player][-MAX_POLICIES:]
    if not state.is_competitive or len(names) < 3:
        return None
    rates = snapshot_win_rates(state, names)
    numbers = np.array([state.population.index[name] for name in names], dtype=np.int64)
    pairs = frozen_pairs(state, numbers)
    games = np.zeros_like(rates)
    games[pairs.first, pairs.second] = games[pairs.second, pairs.first] = pairs.games
    return cycles(rates, games, names)


def cycles(win_rates: Array, games: Array, names: list[str]) -> CycleReport:
    """The report on a table.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j. games: float64 [N, N], games behind it.
      names: [N].
    """
    beats = _surely_beats(win_rates, games)
    arcs = beats.astype(np.float64)
    num_cycles = round(float(np.trace(arcs @ arcs @ arcs)) / 3.0)
    return CycleReport(
        policies=len(names),
        cyclic_fraction=cyclic_fraction(win_rates),
        num_cycles=num_cycles,
        ring=_largest_ring(beats),
        strongest=_strongest(win_rates, beats, names) if num_cycles else (),
    )


def cyclic_fraction(win_rates: Array) -> float:
    """Fraction of the squared log-odds that is left when the best rating of each policy is taken out; 0 for a flat
    table.

    Source: Jiang et al. 2011, HodgeRank; Balduzzi et al. 2018, transitive and cyclic part of a game.
    """
    rates = np.clip(0.5 + 0.5 * (win_rates - win_rates.T), 1e-3, 1.0 - 1e-3)
    odds = np.log(rates / (1.0 - rates))
    strength = odds.mean(axis=1)
    rest = odds - (strength[:, None] - strength[None, :])
    total = float((odds**2).sum())
    return float((rest**2).sum()) / total if total > 1e-9 else 0.0


def _surely_beats(win_rates: Array, games: Array) -> NDArray[np.bool_]:
    """Lower end of Wilson's interval above a half."""
    played = np.maximum(games, 1e-9)
    centre = (win_rates + INTERVAL_Z**2 / (2.0 * played)) / (1.0 + INTERVAL_Z**2 / played)
    spread = win_rates * (1.0 - win_rates) / played + INTERVAL_Z**2 / (4.0 * played**2)
    reliably: NDArray[np.bool_] = centre - INTERVAL_Z * np.sqrt(spread) / (1.0 + INTERVAL_Z**2 / played) > 0.5
    return reliably & (games > 0.0)


def _largest_ring(beats: NDArray[np.bool_]) -> int:
    """Size of the largest strongly connected set, from who reaches whom."""
    reaches = beats | np.eye(len(beats), dtype=np.bool_)
    for _ in range(max(int(np.ceil(np.log2(len(beats)))), 1)):
        reaches = (reaches.astype(np.float32) @ reaches.astype(np.float32)) > 0.0
    return int((reaches & reaches.T).sum(axis=1).max())


def _strongest(win_rates: Array, beats: NDArray[np.bool_], names: list[str]) -> tuple[tuple[str, float], ...]:
    best, found = -1.0, (0, 0, 0)
    weight = np.where(beats, win_rates, 0.0)
    for first in range(len(names)):
        # Weakest link of first -> second -> third -> first for all seconds and thirds at once.
        links = np.minimum(np.minimum(weight[first][:, None], weight), weight[:, first][None, :])
        if links.max() > best:
            best = float(links.max())
            second, third = np.unravel_index(int(links.argmax()), links.shape)
            found = (first, int(second), int(third))
    return tuple((names[i], float(win_rates[i, j])) for i, j in zip(found, (*found[1:], found[0]), strict=True))
