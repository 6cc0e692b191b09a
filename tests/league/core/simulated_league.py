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
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.records import AssignmentOutcome, Lease, Progress
from league.core.state.scoring import BY_WINS, Scoring
from league.core.state.state import LeagueState
from league.envs.placements import Placements, has_placements

QUICK_GATE = GateConfig(test={"min_games": 4}, min_steps=1_000, timeout_steps=6_000)
DIGEST = "0" * 64


def three_roles(*, count: int = 1, gate: GateConfig = QUICK_GATE, rating_fraction: float = 0.05) -> LeagueConfig:
    """Main agents, main exploiters and league exploiters, with a gate that fires within a test."""
    return LeagueConfig(
        players=(
            PlayerConfig(role="main_agent", count=count, step_weight=2.0, gate=gate),
            PlayerConfig(role="main_exploiter", count=count, gate=gate),
            PlayerConfig(role="league_exploiter", count=count, gate=gate),
        ),
        ratings=RatingConfig(step_fraction=rating_fraction),
    )


def env_steps_of(state: LeagueState) -> dict[str, int]:
    """Env steps of the finished leases of each player."""
    return {name: int(state.fair_share.env_steps.values[player.index]) for name, player in state.players.items()}


def outcome_of(
    policies: Sequence[str], teams: Sequence[int], *, games: int, winners: Sequence[int | None]
) -> AssignmentOutcome:
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
    return AssignmentOutcome(
        policies=tuple(policies),
        games=games,
        aborted=0,
        decisions=10 * games,
        wins=tuple(map(tuple, wins)),
        draws=tuple(map(tuple, draws)),
        return_sums=tuple(0.0 for _ in seats),
        truncated=games // 3,
        placements=placements_from(teams, winners) if has_placements(teams) else (),
    )


def placements_from(teams: Sequence[int], winners: Sequence[int | None]) -> Placements:
    """The winning team first and all others level behind it; all level where nobody won."""
    sides = list(dict.fromkeys(teams))
    ranks = [tuple(int(winner in sides and winner != side) for side in sides) for winner in winners]
    return tuple(sorted(Counter(ranks).items()))


class SimulatedLeague:
    """A created and started league.

    journal: every event so far; strength: policy id -> log-odds of winning. Where returns are counted, they are drawn
    apart from who wins, from -1 to 1 a game.
    """

    def __init__(
        self,
        config: LeagueConfig,
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
        self.ask(CreateLeague(seed, len(teams), teams, config, scoring))
        self.ask(StartRun())

    def ask(self, command: Command) -> list[Event]:
        """Decide and apply; a refusal is raised and changes nothing."""
        rng = np.random.default_rng([self.seed, len(self.journal)])
        events = decide(self.state, command, rng)
        for event in events:
            apply(self.state, event)
        self.journal.extend(events)
        return events

    def confirm_directives(self) -> None:
        """Carry out whatever the learners are ordered to do, as often as that brings new orders."""
        while self.state.directives:
            directive = next(iter(self.state.directives.values()))
            player = self.state.players[directive.player]
            if directive.kind == "snapshot":
                self.ask(ConfirmSnapshot(directive.directive_id, DIGEST, player.version, player.trained_steps))
            elif directive.kind == "transplant":
                self.ask(ConfirmTransplant(directive.directive_id, DIGEST, player.version, player.trained_steps))
            else:
                self.ask(ConfirmReset(directive.directive_id))

    def grant(self, purpose: str = "any", *, player: str = "") -> Lease:
        """One lease. player: as of `RequestLease`."""
        (granted,) = self.ask(RequestLease("host", purpose, player=player))  # type: ignore[arg-type]
        assert isinstance(granted, LeaseGranted)
        return granted.lease

    def play(self, lease: Lease, *, games: int = 20) -> tuple[AssignmentOutcome, ...]:
        """Outcomes of a lease: `games` games of each assignment, won by teams in proportion to exp(strength)."""
        teams = self.state.teams
        sides = sorted(set(teams))
        outcomes = []
        for assignment in lease.assignments:
            weights = np.array([np.exp(self.strength(assignment.policies[teams.index(side)])) for side in sides])
            winners = self.outcome_rng.choice(sides, size=games, p=weights / weights.sum()) if len(sides) > 1 else []
            outcome = outcome_of(assignment.policies, teams, games=games, winners=[int(w) for w in winners])
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
            self.confirm_directives()
            lease = self.grant()
            self.finish(lease, env_steps=steps_per_lease)
            if lease.home is not None:
                self.train(lease.home, steps_per_lease)
        self.confirm_directives()
