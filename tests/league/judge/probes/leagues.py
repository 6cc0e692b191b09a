"""Made-up leagues with probes: one that chases itself, one that gets stronger, and one whose ratings stand still."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from league.core.state.commands import BeginProbe, EndProbe, FinishLease, RequestSnapshot
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.records import ProbeOutcome, ProbeReading
from tests.league.core.simulated_league import SimulatedLeague, outcome_of

REACH = 2
"""Snapshots back that a chasing one has learnt to beat."""
YARDSTICKS: Mapping[str, float] = {"weak": -1.0, "even": 0.0, "strong": 1.0}
"""Strength of each, in logits."""

Edge = Callable[[int, int], float]
"""Log-odds with which snapshot number I beats snapshot number J."""


def chasing(first: int, second: int) -> float:
    """Each beats those just before it, and is even with all others: nobody gets stronger."""
    return 1.0 if 0 < first - second <= REACH else -1.0 if 0 < second - first <= REACH else 0.0


def improving(first: int, second: int) -> float:
    """Each is a little stronger than the one before."""
    return 0.25 * (first - second)


class PairLeague(SimulatedLeague):
    """One player whose snapshots beat each other by an edge. Only neighbours meet: a league that never looks back.

    Args:
      edge: between snapshots. strength: of a snapshot against fixed yardsticks, in logits.
    """

    def __init__(self, edge: Edge, strength: Callable[[int], float], *, snapshots: int, seed: int = 0) -> None:
        gate = GateConfig(min_steps=10**9, timeout_steps=10**9)
        super().__init__(
            LeagueConfig(players=(PlayerConfig(gate=gate),), ratings=RatingConfig(step_fraction=0.9)), seed=seed
        )
        self.edge, self.yardstick_strength = edge, strength
        self.confirm_directives()
        rng = np.random.default_rng(seed)
        for number in range(1, snapshots):
            self.train("main-0", 1_000)
            self.ask(RequestSnapshot("main-0", "manual"))
            self.confirm_directives()
            self.rate(number, rng)
            self.probe(number, rng)

    def rate(self, number: int, rng: np.random.Generator) -> None:
        """Games of the newest snapshot against the few before it, as a rating match brings them."""
        for other in range(max(number - REACH, 0), number):
            lease = self.grant("rate")
            pair = (f"main-0-s{number}", f"main-0-s{other}")
            chance = 1.0 / (1.0 + np.exp(-self.edge(number, other)))
            winners = [0 if won else 1 for won in rng.random(60) < chance]
            outcome = outcome_of(pair, self.state.teams, games=60, winners=winners)
            self.ask(FinishLease(lease.lease_id, lease.token, 400, (outcome,)))

    def probe(self, number: int, rng: np.random.Generator) -> None:
        """Scores of the newest snapshot against each yardstick over 200 games."""
        readings = []
        for name, strength in YARDSTICKS.items():
            chance = 1.0 / (1.0 + np.exp(strength - self.yardstick_strength(number)))
            value = float(rng.binomial(200, chance)) / 200.0
            readings.append(ProbeReading(name, value, value, value, 200))
        self.ask(BeginProbe("yardsticks", f"main-0-s{number}"))
        self.ask(EndProbe(ProbeOutcome(self.state.probes.begun, tuple(readings), 1.0)))

    def lose_to_the_past(self, snapshot: str, earlier: str) -> None:
        """A snapshot scores a fifth against an earlier one."""
        self.ask(BeginProbe("past", snapshot, (earlier,)))
        reading = ProbeReading("worst_past", 0.2, 0.15, 0.26, 200, note=earlier)
        self.ask(EndProbe(ProbeOutcome(self.state.probes.begun, (reading,), 1.0)))

    def exploit(self, snapshot: str, *, score: float) -> None:
        """A snapshot scores so much against a fresh player."""
        self.ask(BeginProbe("best_response", snapshot, ()))
        reading = ProbeReading("fresh_exploiter", score, score - 0.06, score + 0.06, 200, note="reaches 0.6")
        self.ask(EndProbe(ProbeOutcome(self.state.probes.begun, (reading,), 1.0)))
