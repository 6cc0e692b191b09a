"""The daemon's observation of itself, made every turn; `league.run.observer` turns it into tables and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from league.run.budget import Spent
from league.runtime.protocol import HostLost, LearnerProgress


@dataclass(frozen=True)
class Observation:
    """One turn.

    Fields:
      spent: since the first start of the run; budget_fraction: part of the budget.
      phase: "training", "rating" or "draining".
      progress: by player, the newest report.
      refused, hosts_lost: answers refused and hosts lost since the start of the daemon.
      parked: hosts that were lost so often that they are tried again only now and then.
    """

    spent: Spent
    budget_fraction: float
    phase: str
    progress: dict[str, LearnerProgress]
    refused: int
    hosts_lost: int
    parked: tuple[str, ...] = ()


@dataclass
class HostLosses:
    """Hosts lost since the start of the daemon. count: how many times; parked: those that are parked now."""

    count: int = 0
    parked: dict[str, None] = field(default_factory=dict)

    def lost(self, report: HostLost, *, say: Callable[[str], object]) -> None:
        """Count a loss; says once when a host is parked."""
        self.count += 1
        if report.parked_s and report.host not in self.parked:
            self.parked[report.host] = None
            say(f"{report.host} is parked, and tried again every {report.parked_s:g} s: {report.reason}")

    def started(self, host: str) -> None:
        """The host is there (again)."""
        self.parked.pop(host, None)
