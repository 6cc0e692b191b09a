"""A league without hosts: commands in, events applied and kept, outcomes drawn from a given strength of each policy."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from league.core.league import apply, decide
from league.core.state.commands import (
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    ConfirmTransplant,
    CreateLeague,
    FinishLease,
    ReportProgress,
    RequestLease,
    StartRun,
)
from league.core.state.events import Event, LeaseGranted
from league.core.state.league_config import GateSettings, LeagueSettings, PlayerSettings, RatingSettings
from league.core.state.placements import Orders, are_ordered
from league.core.state.records import Lease, Progress, SeatingOutcome
from league.core.state.scoring import BY_WINS, Scoring
from league.core.state.state import LeagueState

QUICK_GATE = GateSettings(min_games=4, min_steps=1_000, timeout_steps=6_000)
DIGEST = "0" * 64


def three_roles(*, count: int = 1, gate: GateSettings = QUICK_GATE, rating_share: float = 0.05) -> LeagueSettings:
    """Main agents, main exploiters and league exploiters, with a gate that fires within a test."""
    return LeagueSettings(
        players=(
            PlayerSettings(role="main_agent", count=count, share=2.0, gate=gate),
            PlayerSettings(role="main_exploiter", count=count, gate=gate),
            PlayerSettings(role="league_exploiter", count=count, gate=gate),
        ),
        ratings=RatingSettings(share=rating_share),
    )


def outcome_of(
    policies: Sequence[str], teams: Sequence[int], *, games: int, winners: Sequence[int | None]
) -> SeatingOutcome:
    """Totals of `games` games, a third of them cut off; winners: [games] team that won each, None for a draw of all."""
    seats = range(len(teams))
    wins = [[0 for _ in seats] for _ in seats]
    draws = [[0 for _ in seats] for _ in seats]
    for winner in winners:
        for i in seats:
            for j in seats:
                if teams[i] == teams[j]:
                    continue
                wins[i][j] += int(winner == teams[i])
                draws[i][j] += int(winner not in (teams[i], teams[j]))
    return SeatingOutcome(
        policies=tuple(policies),
        games=games,
        aborted=0,
        turns=10 * games,
        wins=tuple(map(tuple, wins)),
        draws=tuple(map(tuple, draws)),
        return_sums=tuple(0.0 for _ in seats),
        truncated=games // 3,
        orders=orders_from(teams, winners) if are_ordered(teams) else (),
    )


def orders_from(teams: Sequence[int], winners: Sequence[int | None]) -> Orders:
    """The winning team first and all others level behind it; all level where nobody won."""
    sides = list(dict.fromkeys(teams))
    ranks = [tuple(int(winner in sides and winner != side) for side in sides) for winner in winners]
    return tuple(sorted(Counter(ranks).items()))


class SimulatedLeague:
    """A founded and started league.

    journal: every event so far; strength: policy id -> log-odds of winning. Where returns are counted, they are drawn
    apart from who wins, from -1 to 1 a game.
    """

    def __init__(
        self,
        settings: LeagueSettings,
        *,
        seed: int = 0,
        teams: tuple[int, ...] = (0, 1),
        strength: Callable[[str], float] = lambda policy: 0.0,
        scoring: Scoring = BY_WINS,
    ) -> None:
        self.state = LeagueState()
        self.journal: list[Event] = []
        self.strength = strength
        self.seed = seed
        self.outcome_rng = np.random.default_rng(seed + 1)
        self.ask(CreateLeague(seed, len(teams), teams, settings, scoring))
        self.ask(StartRun())

    def ask(self, command: Command) -> list[Event]:
        """Decide and apply; a refusal is raised and changes nothing."""
        rng = np.random.default_rng([self.seed, len(self.journal)])
        events = decide(self.state, command, rng, now=0.0)
        for event in events:
            apply(self.state, event)
        self.journal.extend(events)
        return events

    def confirm_orders(self) -> None:
        """Carry out whatever the learners are ordered to do, as often as that brings new orders."""
        while self.state.orders:
            order = next(iter(self.state.orders.values()))
            player = self.state.players[order.player]
            if order.kind == "snapshot":
                self.ask(ConfirmSnapshot(order.order_id, DIGEST, player.version, player.trained_steps))
            elif order.kind == "transplant":
                self.ask(ConfirmTransplant(order.order_id, DIGEST, player.version, player.trained_steps))
            else:
                self.ask(ConfirmReset(order.order_id))

    def grant(self, purpose: str = "any") -> Lease:
        """One lease."""
        (granted,) = self.ask(RequestLease("host", purpose))  # type: ignore[arg-type]
        assert isinstance(granted, LeaseGranted)
        return granted.lease

    def play(self, lease: Lease, *, games: int = 20) -> tuple[SeatingOutcome, ...]:
        """Outcomes of a lease: `games` games of each seating, won by teams in proportion to exp(strength)."""
        teams = self.state.teams
        sides = sorted(set(teams))
        outcomes = []
        for seating in lease.seatings:
            weights = np.array([np.exp(self.strength(seating.policies[teams.index(side)])) for side in sides])
            winners = self.outcome_rng.choice(sides, size=games, p=weights / weights.sum()) if len(sides) > 1 else []
            outcome = outcome_of(seating.policies, teams, games=games, winners=[int(w) for w in winners])
            if self.state.scoring.score == "returns":
                earned = self.outcome_rng.uniform(-games, games, len(teams))
                outcome = dataclasses.replace(outcome, return_sums=tuple(earned.tolist()))
            outcomes.append(outcome)
        return tuple(outcomes)

    def finish(self, lease: Lease, *, games: int = 20, env_steps: int = 400) -> list[Event]:
        """Answer a lease with simulated games."""
        return self.ask(FinishLease(lease.lease_id, lease.token, env_steps, self.play(lease, games=games)))

    def train(self, player: str, steps: int) -> list[Event]:
        """A learner reports `steps` more."""
        now = self.state.players[player]
        return self.ask(ReportProgress(Progress(player, now.version + 1, now.trained_steps + steps)))

    def run(self, leases: int, *, steps_per_lease: int = 400) -> None:
        """The ordinary course of a league: orders carried out, leases granted, answered and learnt from."""
        for _ in range(leases):
            self.confirm_orders()
            lease = self.grant()
            self.finish(lease, env_steps=steps_per_lease)
            if lease.home is not None:
                self.train(lease.home, steps_per_lease)
        self.confirm_orders()
