"""The snapshot to take for the strongest in a game of one team, where probes have measured that it got worse later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.core.state.records import ProbeReading
from league.core.state.state import LeagueState

RETURN_SCALE = "return"
"""Scale of the readings that are mean returns."""
MAX_AGE = 0.1
"""Fraction of the training of the newest snapshot that may have come after the newest measured one."""


@dataclass(frozen=True)
class BeforeFall:
    """The newest snapshot that returned as much as any. kept, fallen: its reading, and that of the newest measured."""

    snapshot: str
    kept: ProbeReading
    fallen_snapshot: str
    fallen: ProbeReading


def before_fall(state: LeagueState, candidates: Sequence[str]) -> BeforeFall | None:
    """The newest of the measured candidates whose interval meets that of the highest; None without a fall.

    A fall is a newest measured snapshot whose interval lies below that of the highest lower bound. One that was
    measured long before the newest candidate says nothing about today.

    Args:
      candidates: snapshots, oldest first.
    """
    known = _readings(state)
    measured = [name for name in candidates if name in known]
    if not measured:
        return None
    newest, today = measured[-1], state.snapshots[candidates[-1]].trained_steps
    floor = max(known[name].low for name in measured)
    if known[newest].high >= floor or state.snapshots[newest].trained_steps < (1.0 - MAX_AGE) * today:
        return None
    kept = next(name for name in reversed(measured) if known[name].high >= floor)
    return BeforeFall(kept, known[kept], newest, known[newest])


def _readings(state: LeagueState) -> dict[str, ProbeReading]:
    """The newest mean return of each snapshot that was measured."""
    return {
        result.task.snapshot: reading
        for result in state.probes.results
        for reading in result.readings
        if reading.scale == RETURN_SCALE
    }
