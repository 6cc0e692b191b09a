"""A runtime of simulated hosts whose requests and answers are lost, doubled, late and out of order, in virtual time.

It keeps to the contract of `league.hosts.protocol.Runtime`. A learner host answers in the order in which it was
asked. An answer that does not come in time is followed by the loss of its host.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from league.agents.restart_state import Counters, counters_in, restart_state
from league.agents.weights import Weights
from league.core.state.commands import FinishLease
from league.core.state.records import AssignmentOutcome, Lease, Progress
from league.hosts.protocol import (
    CheckpointTaken,
    HostLost,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    NodeInfo,
    PlayerInstalled,
    PlayLease,
    Reconfigure,
    Report,
    ResetDone,
    ResetPlayer,
    SnapshotTaken,
    TakeCheckpoint,
    TakeSnapshot,
    Task,
)
from league.store.run_folder import WorkerStatus

LEARNER = "learner-0"
DEADLINE_S = 10.0
"""A task that is not answered so long costs its host."""
STEPS_PER_LEASE = 100
UPDATES_PER_LEASE = 2
STEPS_PER_UPDATE = 50
MARKER = "reset"
"""Entry of a restart state: the directive of the reset that its weights descend from; -1 where that is not known."""


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
class Learner:
    """One player's learner: its progress, and the directive of the reset that its weights descend from."""

    version: int = 0
    trained_steps: int = 0
    marker: int = 0


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


class SimulatedRuntime:
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
        self.clock = clock
        self._rng = rng
        self._chances = chances
        self._weights = weights
        self._players = list(players)
        self._step = step
        self._watch = watch
        self._marker_of = marker_of
        self._numbers = 0
        self._coming: list[tuple[float, int, Report]] = [(clock.now + rng.uniform(0, 5), 0, old) for old in left_over]
        self._hosts = {name: Host(name, "actor_host") for name in ("actor-0", "actor-1")}
        self._named = 1
        self._hosts[LEARNER] = Host(LEARNER, "learner_host")
        self.learners: dict[str, Learner] = {}
        self.on_poll: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Every host starts with the first poll."""

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
        reports = self._done(task)
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

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        """There is one, which stays."""
        raise NotImplementedError

    def keeps(self, snapshot: str) -> bool:
        """Of none."""
        return False

    def workers(self) -> tuple[WorkerStatus, ...]:
        """None that a person could look at."""
        return ()

    def nodes(self) -> tuple[NodeInfo, ...]:
        """None: simulated hosts run on no machine."""
        return ()

    def close(self) -> None:
        """There is nothing to end."""

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

    def _done(self, task: Task) -> list[Report]:
        if isinstance(task, PlayLease):
            return self._play(task.lease)
        if isinstance(task, InstallPlayer):
            self.learners[task.player] = self._installed(task)
            return [PlayerInstalled(task.player)]
        learner = self.learners.get(task.player)
        assert learner is not None, f"{task} for a player that was never installed"
        if isinstance(task, TakeSnapshot):
            return [SnapshotTaken(task.directive_id, task.player, self._frozen(learner), learner.trained_steps)]
        if isinstance(task, ResetPlayer):
            learner.marker = task.directive_id
            return [ResetDone(task.directive_id)]
        assert isinstance(task, TakeCheckpoint)
        counters = Counters(learner.version, learner.trained_steps)
        saved = restart_state({MARKER: np.array([learner.marker])}, counters, np.zeros(1, np.float32))
        return [CheckpointTaken(Progress(task.player, learner.version, learner.trained_steps), saved)]

    def _installed(self, task: InstallPlayer) -> Learner:
        if task.saved is not None:
            counters = counters_in(task.saved)
            return Learner(counters.version, counters.trained_steps, int(task.saved[MARKER][0]))
        version = 0 if task.weights is None else task.weights.version
        return Learner(version, task.trained_steps, self._marker_of(task.player))

    def _frozen(self, learner: Learner) -> Weights:
        vector = self._weights.vector + np.float32(learner.version)
        return replace(self._weights, version=learner.version, vector=vector)

    def _play(self, lease: Lease) -> list[Report]:
        learner = None if lease.home is None else self.learners.get(lease.home)
        if lease.home is not None and learner is None:
            return [LeaseLost(lease.host, lease.lease_id, "its learner was lost")]
        answer = FinishLease(lease.lease_id, lease.token, steps_of(lease), outcomes_of(lease))
        if lease.home is not None and learner is not None:
            learner.version += UPDATES_PER_LEASE
            learner.trained_steps += UPDATES_PER_LEASE * STEPS_PER_UPDATE
            progress = Progress(lease.home, learner.version, learner.trained_steps)
            self._coming.append((self.clock.now + self._rng.expovariate(1.0), 0, LearnerProgress(progress, None, 0)))
        return [LeaseDone(lease.host, answer)]


def steps_of(lease: Lease) -> int:
    """Env steps that a lease brings."""
    return min(STEPS_PER_LEASE, lease.steps * lease.num_envs)


def outcomes_of(lease: Lease) -> tuple[AssignmentOutcome, ...]:
    """Two games of every assignment, one won by either side."""
    return tuple(
        AssignmentOutcome(assignment.policies, 2, 0, 14, ((0, 1), (1, 0)), ((0, 0), (0, 0)), (0.0, 0.0))
        for assignment in lease.assignments
    )
