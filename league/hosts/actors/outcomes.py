"""Totals of games as the answer to a lease has them."""

from __future__ import annotations

from league.agents.acting.outcome_counter import AssignmentTotals
from league.core.state.records import AssignmentOutcome


def outcome_of(totals: AssignmentTotals) -> AssignmentOutcome:
    """The counts of one assignment as plain numbers, which an event holds."""
    return AssignmentOutcome(
        policies=totals.policies,
        games=totals.games,
        aborted=totals.aborted,
        decisions=totals.decisions,
        wins=tuple(tuple(int(x) for x in row) for row in totals.wins),
        draws=tuple(tuple(int(x) for x in row) for row in totals.draws),
        return_sums=tuple(float(x) for x in totals.return_sums),
        truncated=totals.truncated,
        placements=totals.placements,
    )
