"""The status of the daemon, made every turn of its loop; `league.run.observing` turns it into tables and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from league.run.budget import Spent
from league.runtime.protocol import HostLost, LearnerProgress, LeaseDone


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


@dataclass
class HostLosses:
    """Hosts and games lost since the start of the daemon.

    Fields:
      count: hosts lost, how many times; parked: those that are parked now.
      gone: host -> why, of those that are not back yet.
      quarantined: host -> its games that are not played any more.
    """

    count: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)
    parked: dict[str, None] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)

    def lost(self, report: HostLost, *, say: Callable[[str], object]) -> None:
        """Count a loss; says once when a host is parked."""
        self.count += 1
        if report.for_good:
            self.started(report.host)  # nobody waits for it
        else:
            self.gone[report.host] = report.reason
        if report.parked_s and report.host not in self.parked:
            self.parked[report.host] = None
            say(f"{report.host} is parked, and tried again every {report.parked_s:g} s: {report.reason}")

    def failed(self, report: LeaseDone, *, say: Callable[[str], object]) -> None:
        """Count the games that a host gave up, and say which."""
        for failure in report.failures:
            if failure.quarantined:
                self.quarantined[report.host] = self.quarantined.get(report.host, 0) + 1
                say(f"{report.host}: {failure.text()}. Its traceback is under logs/ in the run folder.")

    def started(self, host: str) -> None:
        """The host is there (again), with all its games."""
        self.gone.pop(host, None)
        self.parked.pop(host, None)
        self.quarantined.pop(host, None)
