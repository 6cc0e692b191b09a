"""A runtime of simulated hosts whose requests and answers are lost, doubled, late and out of order, in virtual time.

It keeps to the contract of `league.hosts.protocol.Runtime`. A learner host answers in the order in which it was
asked. An answer that does not come in time is followed by the loss of its host.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.durability.simulated.fake_hosts import FakeHosts
from league.agents.weights import Weights
from league.core.state.records import Lease
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    InstallPlayer,
    LeaseDone,
    LeaseLost,
    PlayLease,
    Reconfigure,
    Report,
    ResetPlayer,
    Task,
)

LEARNER = "learner-0"
DEADLINE_S = 10.0
"""A task that is not answered so long costs its host."""


@dataclass
class VirtualClock:
    """Seconds that never go back, and a wall clock that jumps.

    Fields:
      now: monotonic seconds. ahead_s: of the wall clock.
    """

    now: float = 0.0
    ahead_s: float = 0.0

    def monotonic(self) -> float:
        """For deadlines."""
        return self.now

    def wall(self) -> float:
        """A label in the journal."""
        return 1.7e9 + self.now + self.ahead_s


@dataclass
class Host:
    """One simulated host. number: of its starts so far; answers of an earlier one come late."""

    name: str
    kind: str
    is_up: bool = False
    starts_at: float = 0.0
    deadlines: dict[int, float] = field(default_factory=dict)
    answered_until: float = 0.0


@dataclass(frozen=True)
class Chances:
    """Chance of each fault, for one task or (host_lost, jump) one poll; 0 is never."""

    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    host_lost: float = 0.0
    jump: float = 0.0


class SimulatedRuntime(FakeHosts):
    """Two actor hosts and a learner host.

    Args:
      clock: virtual. rng: chooses the faults. chances: of each.
      weights: whose layout the players' weights have.
      players: ids of those that the learner host holds at first.
      step: called at every step between which the process may die.
      watch: called with every task as it is submitted.
      marker_of: player -> the marker that a start from a snapshot gives it.
      left_over: reports of an earlier daemon's hosts that come only now.
    """

    def __init__(
        self,
        clock: VirtualClock,
        rng: random.Random,
        chances: Chances,
        *,
        weights: Weights,
        players: tuple[str, ...],
        step: Callable[[str], None],
        watch: Callable[[Task, SimulatedRuntime], None],
        marker_of: Callable[[str], int],
        left_over: list[Report],
    ) -> None:
        super().__init__(weights)
        self.clock = clock
        self._rng = rng
        self._chances = chances
        self._players = list(players)
        self._step = step
        self._watch = watch
        self._marker_of = marker_of
        self._numbers = 0
        self._coming: list[tuple[float, int, Report]] = [(clock.now + rng.uniform(0, 5), 0, old) for old in left_over]
        self._hosts = {name: Host(name, "actor_host") for name in ("actor-0", "actor-1")}
        self._named = 1
        self._hosts[LEARNER] = Host(LEARNER, "learner_host")
        self.on_poll: Callable[[], None] = lambda: None

    def submit(self, task: Task) -> None:
        """Have the task done, unless its host is not there or the request is lost."""
        self._step("submit")
        self._watch(task, self)
        name = task.lease.host if isinstance(task, PlayLease) else LEARNER
        if not isinstance(task, PlayLease) and task.player not in self._players:
            self._players.append(task.player)
        host = self._hosts[name]
        if not host.is_up:
            return
        if isinstance(task, Reconfigure):
            return
        self._numbers += 1
        number = self._numbers
        host.deadlines[number] = self.clock.now + DEADLINE_S
        if self._rng.random() < self._chances.lost / 2:
            return
        reports = self.answer(task)
        if self._rng.random() < self._chances.lost / 2:
            return
        delay = self._rng.expovariate(1.0)
        due = self.clock.now + (delay if isinstance(task, PlayLease) else 0.2 * delay)
        if isinstance(task, PlayLease) and self._rng.random() < self._chances.late:
            due += 2.0 * DEADLINE_S
        if not isinstance(task, PlayLease):
            due = host.answered_until = max(due, host.answered_until)
        copies = 2 if self._rng.random() < self._chances.doubled else 1
        for copy in range(copies):
            again = copy * self._rng.expovariate(0.2) if isinstance(task, PlayLease) else 0.0
            self._coming.extend((due + again, number, report) for report in reports)

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        """The answers that came in meanwhile."""
        self._step("poll")
        self.clock.now += self._rng.uniform(0.2, 1.0)
        if self._rng.random() < self._chances.jump:
            self.clock.ahead_s += self._rng.choice([-3600.0, 3600.0, -0.5, 86400.0])
            self.clock.now += self._rng.choice([0.0, 0.0, 2.0 * DEADLINE_S])
        self.on_poll()
        reports: list[Report] = []
        came = sorted((item for item in self._coming if item[0] <= self.clock.now), key=lambda item: item[0])
        self._coming = [item for item in self._coming if item[0] > self.clock.now]
        for _, number, report in came:
            for host in self._hosts.values():
                host.deadlines.pop(number, None)
            reports.append(report)
        reports.extend(self._losses())
        reports.extend(self._starts())
        return reports

    def add_actor_host(self) -> str:
        """One host more, which starts with a later poll."""
        self._named += 1
        name = f"actor-{self._named}"
        self._hosts[name] = Host(name, "actor_host", starts_at=self.clock.now + self._rng.uniform(0.0, 5.0))
        return name

    def remove_actor_host(self, name: str) -> None:
        """One host fewer; late answers of it may still come."""
        del self._hosts[name]

    def in_flight(self) -> list[Report]:
        """Answers to leases that are on their way."""
        return [report for _, _, report in self._coming if isinstance(report, LeaseDone | LeaseLost)]

    def _starts(self) -> list[Report]:
        started = [host for host in self._hosts.values() if not host.is_up and self.clock.now >= host.starts_at]
        for host in started:
            host.is_up = True
        return [
            HostStarted(host.name, host.kind, tuple(self._players) if host.name == LEARNER else ()) for host in started
        ]

    def _losses(self) -> list[Report]:
        reports: list[Report] = []
        for host in self._hosts.values():
            overdue = any(deadline < self.clock.now for deadline in host.deadlines.values())
            if host.is_up and (overdue or self._rng.random() < self._chances.host_lost):
                reports.append(self._lose(host, "it did not answer" if overdue else "it was killed"))
        return reports

    def _lose(self, host: Host, reason: str) -> Report:
        """End a host: a learner host's answers go with it; those of an actor host may still come."""
        host.is_up, host.starts_at = False, self.clock.now + self._rng.uniform(0.0, 5.0)
        host.deadlines.clear()
        if host.name == LEARNER:
            self.learners.clear()
            self._coming = [item for item in self._coming if isinstance(item[2], LeaseDone | LeaseLost)]
        elif self._rng.random() >= self._chances.late:
            self._coming = [item for item in self._coming if getattr(item[2], "host", None) != host.name]
        return HostLost(host.name, host.kind, reason, tuple(self._players) if host.name == LEARNER else ())

    def answer(self, task: Task) -> list[Report]:
        """As of all hosts; a learner host has the players that were installed alone."""
        if not isinstance(task, InstallPlayer | PlayLease):
            assert task.player in self.learners, f"{task} for a player that was never installed"
        if isinstance(task, ResetPlayer):
            self.learners[task.player].marker = task.directive_id
        return super().answer(task)

    def play(self, lease: Lease) -> list[Report]:
        """As of all hosts; the learner's progress comes by a way of its own."""
        if lease.home is not None and lease.home not in self.learners:
            return [LeaseLost(lease.host, lease.lease_id, "its learner was lost")]
        done, *progress = super().play(lease)
        self._coming.extend((self.clock.now + self._rng.expovariate(1.0), 0, report) for report in progress)
        return [done]

    def install(self, task: InstallPlayer) -> None:
        """As of all hosts; a start from a snapshot has the marker that the journal says."""
        super().install(task)
        if task.saved is None:
            self.learners[task.player].marker = self._marker_of(task.player)
