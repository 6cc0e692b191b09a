"""The hosts of a run, as its daemon knows them: there, idle, at work, about to leave, or lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from league.config.run_config import RuntimeConfig
from league.core.state.commands import Command
from league.core.state.records import Lease
from league.core.state.state import LeagueState
from league.hosts.protocol import HostLost, LearnerProgress, LeaseDone, Runtime
from league.run.operations.host_numbers import HostNumbers
from league.run.operations.learner_drain import LearnerDrain


@dataclass
class HostLosses:
    """Hosts and games lost since the start of the daemon.

    Fields:
      count: hosts lost, how many times; parked: those that are parked now.
      gone: host -> why, of those that are not back yet.
      quarantined: host -> its games that are not played any more.
      stuck: the call of an env that has not come back for long, with its game; empty for none.
    """

    count: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)
    parked: dict[str, None] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    stuck: str = ""

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


class Fleet:
    """Actor hosts and learner hosts.

    Args:
      runtime: starts and ends them.
      settings: their numbers at the start; 0 actor hosts where the runtime itself follows the machines of a cluster.
      state: the league as this start of the daemon finds it.
      ask: has the league decide on a command; False where it refuses. say: tells the user one sentence.

    Attributes:
      actors: actor hosts that are there. idle: those without a lease, in the order in which they became free.
      leased: newest lease of each actor host; it may have ended since.
      installed: players whose learner is in place.
      progress: newest report of each player's learner.
      numbers: as many actor hosts as there are to be. drain: learner hosts that are to leave. losses: what was lost.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: RuntimeConfig,
        state: LeagueState,
        *,
        ask: Callable[[Command], bool],
        say: Callable[[str], object],
    ) -> None:
        self.actors: set[str] = set()
        self.idle: dict[str, None] = {}
        self.leased = {lease.host: number for number, lease in state.leases.items()}
        self.installed: set[str] = set()
        self.progress: dict[str, LearnerProgress] = {}
        self.numbers = HostNumbers(runtime, number=settings.actor_hosts, ask=ask, say=say)
        self.drain = LearnerDrain(runtime, number=settings.learner_hosts, say=say)
        self.losses = HostLosses()

    @property
    def actor_hosts(self) -> tuple[str, ...]:
        """Every actor host, drained ones that have not ended among them."""
        return self.numbers.names

    @property
    def learner_hosts(self) -> tuple[str, ...]:
        """Every learner host, drained ones that have not ended among them."""
        return self.drain.names

    def settle(self, state: LeagueState, *, number: int) -> None:
        """Start and end actor hosts until there are so many; 0 where the runtime follows the machines of a cluster."""
        for host in self.numbers.settle(state, number=number):
            self.forget(host)

    def free(self, host: str, leases: Mapping[int, Lease]) -> None:
        """An actor host may have a lease, unless it is gone or has one: answers come late and twice."""
        if host in self.actors and self.lease_of(host, leases) is None:
            self.idle[host] = None

    def lease_of(self, host: str, leases: Mapping[int, Lease]) -> int | None:
        """The open lease of an actor host. It has one at most: the newest, for only an idle host is given one."""
        lease_id = self.leased.get(host)
        return lease_id if lease_id in leases else None

    def ready(self, state: LeagueState) -> list[str]:
        """Actor hosts that may be given a lease now: idle, and neither parked nor drained."""
        return [host for host in self.idle if host not in state.hosts]

    def holds_all(self, state: LeagueState) -> bool:
        """True if the learner of every player is in place."""
        return len(self.installed) == len(state.players)

    def forget(self, host: str) -> None:
        """An actor host is gone."""
        self.actors.discard(host)
        self.idle.pop(host, None)
