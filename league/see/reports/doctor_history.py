"""The history of a league that the checks of `league doctor` look at, folded from its events.

Shape letter: S seats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import TIMEOUT
from league.core.metagame.lineage import opponents_met
from league.core.state.events import DirectiveIssued, Event, Evidence, LeaseFinished, LeaseGranted, SnapshotAdded
from league.core.state.records import AssignmentOutcome


@dataclass(frozen=True)
class RunFinding:
    """Something that is probably wrong. check: its kind; what: one sentence; evidence: figures; change: the setting."""

    check: str
    what: str
    evidence: str
    change: str


@dataclass
class HomeGames:
    """Training games of one player in the later half of its leases, by opponent. score: wins and half the draws."""

    games: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    score: dict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass
class Earnings:
    """The returns of the seats.

    Fields:
      equal: bool [S, S], pairs that earned the same in every game.
      low, high: [S] least and greatest mean return of a lease's games.
    """

    equal: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def add(self, outcome: AssignmentOutcome) -> None:
        """Take in the games of one outcome, one at least."""
        means = np.array(outcome.return_sums) / outcome.games
        self.equal &= np.array(outcome.draws) == outcome.games
        self.low, self.high = np.minimum(self.low, means), np.maximum(self.high, means)

    def equal_groups(self) -> list[list[int]]:
        """Groups of seats that always earned the same, and not always the same number."""
        groups, left = list[list[int]](), [seat for seat in range(len(self.low)) if self.low[seat] < self.high[seat]]
        while left:
            group = [seat for seat in left if seat == left[0] or self.equal[left[0], seat]]
            left = [seat for seat in left if seat not in group]
            groups += [group] if len(group) > 1 else []
        return groups


@dataclass
class RunHistory:
    """The facts from the events that the checks need.

    Fields:
      reasons: player -> reasons of its snapshots in order.
      held: player -> evidence of its last snapshot by the timeout.
      ends: (drawn, ended, ended by a time limit) games of every outcome with games.
      homes: player -> its training games lately.
      earnings: of the seats; None before the first game.
      seat_names: of the game, empty where it has none.
      snapshots_per_budget: snapshots of a main agent that the run spreads over its budget; 0 where gates alone decide.
    """

    reasons: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    ends: list[tuple[int, int, int]] = field(default_factory=list)
    homes: dict[str, HomeGames] = field(default_factory=lambda: defaultdict(HomeGames))
    earnings: Earnings | None = None
    snapshots_per_budget: int = 0
    seat_names: tuple[str, ...] = ()


def history_of(
    events: Iterable[Event],
    *,
    leases: int,
    teams: tuple[int, ...],
    snapshots_per_budget: int = 0,
    seat_names: tuple[str, ...] = (),
) -> RunHistory:
    """Fold the events. leases: how many were granted in all."""
    history = RunHistory(snapshots_per_budget=snapshots_per_budget, seat_names=seat_names)
    homes: dict[int, str] = {}
    for event in events:
        if isinstance(event, LeaseGranted) and event.lease.home is not None:
            homes[event.lease.lease_id] = event.lease.home
        elif isinstance(event, LeaseFinished):
            _note_games(history, event, homes.pop(event.lease_id, None), late=event.lease_id * 2 > leases, teams=teams)
        elif isinstance(event, SnapshotAdded):
            history.reasons[event.snapshot.player].append(event.snapshot.reason)
        elif isinstance(event, DirectiveIssued) and event.directive.reason == TIMEOUT:
            history.held[event.directive.player] = event.evidence
    return history


def _note_games(
    history: RunHistory, event: LeaseFinished, home: str | None, *, late: bool, teams: tuple[int, ...]
) -> None:
    for outcome in event.outcomes:
        if outcome.games:
            drawn = max(max(row) for row in outcome.draws)
            history.ends.append((drawn, outcome.games, outcome.truncated))
            if history.earnings is None:
                size = len(outcome.policies)
                history.earnings = Earnings(
                    np.ones((size, size), np.bool_), np.full(size, np.inf), np.full(size, -np.inf)
                )
            history.earnings.add(outcome)
    if home is not None and late:
        own = history.homes[home]
        for met in opponents_met(home, event, teams):
            own.games[met.opponent] += met.games
            own.score[met.opponent] += met.score
