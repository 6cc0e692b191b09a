"""The status of the daemon, made every turn of its loop; `league.run.monitor` turns it into tables and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.hosts.protocol import LearnerProgress
from league.run.budget import Spent
from league.store.run_folder import Troubles


@dataclass(frozen=True)
class DaemonStatus:
    """The daemon after one turn of its loop.

    Fields:
      spent: since the first start of the run; budget_fraction: part of the budget.
      phase: "training", "rating" or "draining".
      progress: by player, the newest report.
      troubles: hosts, answers and games that were lost.
      gone: host -> why, of those lost and not back yet.
    """

    spent: Spent
    budget_fraction: float
    phase: str
    progress: dict[str, LearnerProgress]
    troubles: Troubles = field(default_factory=Troubles)
    gone: Mapping[str, str] = field(default_factory=dict)
