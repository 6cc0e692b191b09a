"""What the daemon shows of itself once a turn; `league.observer` makes tables, heartbeats and metrics of it."""

from __future__ import annotations

from dataclasses import dataclass

from league.limits import Spent
from league.runtime.protocol import LearnerProgress


@dataclass(frozen=True)
class Observation:
    """One turn.

    Fields:
      spent: since the first start of the run; share: part of the budget.
      phase: "training", "rating" or "draining".
      progress: by player, the newest report.
      refused, hosts_lost: answers refused and hosts lost since the start of the daemon.
    """

    spent: Spent
    share: float
    phase: str
    progress: dict[str, LearnerProgress]
    refused: int
    hosts_lost: int
