"""The status of the daemon, made every turn of its loop; `league.run.monitor` turns it into tables and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.hosts.protocol import LearnerProgress
from league.run.budget import Spent


@dataclass(frozen=True)
class DaemonStatus:
    """The daemon after one turn of its loop.

    Fields:
      spent: since the first start of the run; budget_fraction: part of the budget.
      phase: "training", "rating" or "draining".
      progress: by player, the newest report.
      refused, hosts_lost: answers refused and hosts lost since the start of the daemon.
      parked: hosts that were lost so often that they are tried again only now and then.
      quarantined_games: that failed so often that they are not played any more.
      stuck: the call of an env that has not come back for long, with its game; empty for none.
      gone: host -> why, of those lost and not back yet.
    """

    spent: Spent
    budget_fraction: float
    phase: str
    progress: dict[str, LearnerProgress]
    refused: int
    hosts_lost: int
    parked: tuple[str, ...] = ()
    quarantined_games: int = 0
    stuck: str = ""
    gone: Mapping[str, str] = field(default_factory=dict)
