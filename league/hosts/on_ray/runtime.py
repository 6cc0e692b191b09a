"""The runtime on Ray: every host is an actor that we restart, every call has a deadline, every loss a report."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import ray

from league.config.deadlines import PROGRESS_EVERY_S, START_S
from league.config.ray_address import ray_address
from league.config.run_config import RuntimeConfig
from league.envs.protocol import EnvError
from league.hosts.on_ray.calls import PendingCalls, RemoteCall, has_learnt, learner_call
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.fork_server import early_fork
from league.hosts.on_ray.frozen_objects import FrozenObjects
from league.hosts.on_ray.host_processes import (
    ActorHostProcess,
    InferenceHostProcess,
    LeaseUnplayable,
    learner_host_class,
)
from league.hosts.on_ray.nodes.host_placement import LIMITS, HostPlacement
from league.hosts.on_ray.nodes.node_watch import NodeWatch, agree, ask_versions
from league.hosts.on_ray.ray_actors import actor_class, cause_text, kill_actor
from league.hosts.on_ray.replay_host import ReplayProgress, replay_host_class
from league.hosts.on_ray.roster import Host, Roster
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    NodeInfo,
    PlayLease,
    Remark,
    Report,
    Task,
)
from league.hosts.setup import HostSetup
from league.processes.processor_time import num_cores
from league.processes.reaper import Reaper
from league.store.run_folder import WorkerStatus
from league.wording import error_line

logger = logging.getLogger(__name__)

MAX_FAILURES = 5
"""Losses of one host in a row, without any work done in between, after which it is parked."""

PARK_RETRY_S = 180.0
"""Time between two tries to start a parked host."""

BACK_OFF_S = 0.5
"""Wait before a host is started again after its second failure in a row; each further one doubles it and adds as much.
After the first one it is started at once."""


class RayRuntime:
    """Actor hosts and learner hosts as Ray actors.

    Args:
      setup: what hosts build.
      settings: where Ray is and how many hosts there are.
      players: every player, see `Roster`.
      monotonic: seconds that never go back.
      cluster: a Ray that the caller has started and will close, instead of the one that the settings name.
      watch, own_names: of the machines; see `Cluster`.
    """

    def __init__(
        self,
        setup: HostSetup,
        settings: RuntimeConfig,
        *,
        players: tuple[str, ...],
        monotonic: Callable[[], float] = time.monotonic,
        cluster: Cluster | None = None,
        watch: NodeWatch | None = None,
        own_names: tuple[str, ...] = (),
    ) -> None:
        self._setup = setup
        self._monotonic = monotonic
        self._shares_cluster = cluster is not None
        self._cluster = cluster or Cluster(
            ray_address(settings.address, os.environ),
            num_hosts=(settings.actor_hosts or os.cpu_count() or 1)
            + settings.learner_hosts
            + settings.replay_hosts
            + bool(setup.inference),
            object_store_mb=settings.object_store_mb,
            allow_tokenless=settings.allow_tokenless,
            own_names=own_names,
        )
        self._players = players
        self._reaper = Reaper(self._cluster.folder)
        self._roster = Roster(
            players,
            learners=settings.learner_hosts,
            actors=settings.actor_hosts,
            inference=int(bool(setup.inference)),
            replays=settings.replay_hosts,
        )
        self._calls = PendingCalls(monotonic)
        self._deadlines = setup.deadlines
        ask = agree if self._cluster.is_own else ask_versions
        self._placement = HostPlacement(watch or NodeWatch(ask=ask), follows=settings.actor_hosts == 0)
        self._frozen = FrozenObjects(ray.put, max_bytes=settings.object_store_mb * 1024 * 1024 // 2)
        self._reports: list[Report] = []

    def start(self) -> None:
        """Start or join Ray, and begin to bring up every host.

        Raises:
          RayUnreachable: no cluster answers. RayUnguarded: it demands no token.
          LeagueError: policies are to act at an inference host, and the cluster may have several machines.
        """
        if self._setup.inference:
            self._cluster.require_one_machine()
        if not self._shares_cluster:
            self._reaper.start(ours=early_fork.pid)
            self._cluster.start()
        held = {name: self._roster.players_of(name) for name in self._roster.of_kind("learner_host")}
        setups = (self._setup, *self._setup.players.values())
        self._placement.start(held, num_workers=max(setup.learner.pipeline.num_workers for setup in setups))
        for host in self._roster.hosts.values():
            self._spawn(host)

    def submit(self, task: Task) -> None:
        """Call the host that the task concerns; one for a host that is not there is dropped: its loss was reported."""
        if isinstance(task, PlayLease):
            self._submit_lease(task)
            return
        host = self._roster.learner_host_of(task.player)
        if host.handle is None:
            return
        host.tasks.append(learner_call(task))
        self._next_learner_call(host)

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        """Wait for any call to come back; notice deadlines, start lost hosts again, ask learners how far they are.

        The question tells them the budget fraction too.

        Raises:
          EnvError: the env failed in a host; the user has to mend it.
          RayHeadLost: a Ray of our own lost its control store; hosts can still be asked.
          LeagueError: a learner host, or every actor host, is lost again and again.
        """
        if self._cluster.check_head():
            self._follow_machines()
            self._start_due()
        self._ask_progress(budget_fraction)
        if self._calls:
            for reference, call in self._calls.take_finished(timeout_s):
                self._take(reference, call)
        else:
            time.sleep(min(timeout_s, BACK_OFF_S))
        self._end_overdue()
        reports, self._reports = self._reports, []
        return reports

    def add_actor_host(self) -> str:
        return self._roster.add_actor()

    def remove_actor_host(self, name: str) -> None:
        host = self._roster.hosts.pop(name, None)
        if host is not None:
            self._end(host)

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        """As in the protocol; each player comes to a host with the fewest."""
        host, players = self._roster.remove_learner(name)
        self._end(host)
        return players

    def nodes(self) -> tuple[NodeInfo, ...]:
        return tuple(
            NodeInfo(str(node), node.address, node.cpus, node.gpus, hosts)
            for node, hosts in self._placement.nodes().items()
        )

    def keeps(self, snapshot: str) -> bool:
        """Of those in the object store."""
        return snapshot in self._frozen

    def workers(self) -> tuple[WorkerStatus, ...]:
        """Every host that is up."""
        return tuple(
            WorkerStatus(host.kind, host.pid, self._device_of(host), host.name)
            for host in self._roster.hosts.values()
            if host.pid
        )

    def close(self) -> None:
        """End the hosts and a Ray of our own; may be called twice."""
        for host in self._roster.hosts.values():
            self._kill(host, at_once=False)
        self._calls.clear()
        if self._cluster.has_head:
            self._placement.close()
        if not self._shares_cluster:
            self._cluster.close()
            self._reaper.close()

    def _submit_lease(self, task: PlayLease) -> None:
        lease = task.lease
        host = self._roster.hosts[lease.host]
        if host.handle is None:
            return
        learners = self._roster.learner_handles()
        frozen = self._frozen.references(lease.policies, task.frozen)
        self._calls.expect(
            host.handle.play.remote(lease, frozen=frozen, learners=learners, networks=task.networks),
            host,
            lambda answer: [LeaseDone(host.name, *answer)],
            lost=lambda reason: [LeaseLost(host.name, lease.lease_id, reason)],
            deadline_s=self._deadlines.lease_s,
            learner=None if lease.home is None else self._roster.learner_host_of(lease.home),
            keeps=tuple(frozen.values()),
        )

    def _next_learner_call(self, host: Host) -> None:
        """Send a learner host its next call once the last is done, so that its deadline starts only then."""
        if host.is_busy or not host.tasks or host.handle is None:
            return
        call, answer = host.tasks.popleft()
        host.is_busy = True

        def done(result: Any) -> list[Report]:
            host.is_busy = False
            self._next_learner_call(host)
            return answer(result)

        self._calls.expect(call(host.handle), host, done, deadline_s=self._deadlines.directive_s)

    def _spawn(self, host: Host) -> None:
        if host.kind == "learner_host":
            make_learner = learner_host_class(self._placement.learner_options(host.name), num_actors=self._num_actors())
            places = self._placement.worker_places(host.name)
            host.handle = make_learner.remote(self._setup, host.name, places, spare_cores=self._spare_cores())
        elif host.kind == "replay_host":
            make_host = replay_host_class(num_actors=self._num_actors(), num_players=len(self._players))
            host.handle = make_host.remote(self._setup, host.name, is_again=host.failures > 0)
        elif host.kind == "inference_host":
            host.handle = actor_class(InferenceHostProcess).options(**LIMITS).remote(self._setup, host.name)
        else:
            is_extra = host.is_added and self._cluster.is_own and not self._placement.follows
            options = self._placement.actor_options(host.name, is_extra=is_extra)
            host.handle = actor_class(ActorHostProcess).options(**options).remote(self._setup, host.name)
        self._calls.expect(
            host.handle.ready.remote(), host, lambda facts: self._ready(host, *facts), deadline_s=START_S
        )

    def _spare_cores(self) -> int:
        """Cores of this machine for each learner host beside one for every host; 0 on a cluster."""
        if not self._cluster.is_own:
            return 0
        return max(num_cores() - len(self._roster.hosts), 0) // len(self._roster.of_kind("learner_host"))

    def _num_actors(self) -> int:
        """Actor hosts that there may be; where they follow the machines, as many as these have CPUs by now."""
        if not self._placement.follows:
            return len(self._roster.of_kind("actor_host"))
        return int(sum(node.cpus for node in self._placement.nodes()))

    def _follow_machines(self) -> None:
        """Start hosts on machines that have joined, and give those up whose machine is gone."""
        self._reports.extend(map(Remark, self._placement.take_remarks()))
        change = self._placement.change(
            tuple(name for name, host in self._roster.hosts.items() if host.kind != "actor_host")
        )
        for name in change.remove:
            if name in self._roster.hosts:
                self._end(self._roster.hosts.pop(name))
                self._reports.append(HostLost(name, "actor_host", "its machine has left the cluster", for_good=True))
        for node_id in change.add:
            self._placement.pin(self.add_actor_host(), node_id)

    def _device_of(self, host: Host) -> str:
        return (
            self._placement.groups.plan.text(self._roster.players_of(host.name)) if host.kind == "learner_host" else ""
        )

    def _ready(self, host: Host, pid: int, node_id: str) -> list[Report]:
        if refusal := self._placement.started(host.name, node_id):
            self._lose(host, refusal)
            return []
        host.pid = pid
        host.answered_at = self._monotonic()
        return [HostStarted(host.name, host.kind, self._roster.players_of(host.name))]

    def _take(self, reference: Any, call: RemoteCall) -> None:
        try:
            answer = ray.get(reference)
        except ray.exceptions.RayActorError as error:
            self._lose(call.host, error_line(error))
        except EnvError as error:
            raise EnvError(cause_text(error)) from error
        except LeaseUnplayable as error:
            self._reports.extend(call.lost(error_line(error)))
        except ray.exceptions.RayError as error:
            self._failed(call, error)
        else:
            reports = call.answer(answer)
            if has_learnt(reports) or any(isinstance(report, LeaseDone) for report in reports):
                call.host.failures, call.host.parked = 0, False
            self._reports.extend(reports)

    def _failed(self, call: RemoteCall, error: ray.exceptions.RayError) -> None:
        """The call itself raised, and the host with it: its state cannot be trusted."""
        reports = call.lost(error_line(error))
        self._lose(call.host, error_line(error))
        self._reports.extend(reports)

    def _lose(self, host: Host, reason: str) -> None:
        """Count a host as lost and set the time of its next start.

        Raises:
          LeagueError: it was lost too often in a row, and the run cannot continue without it.
        """
        self._end(host)
        host.failures += 1
        host.parked = host.failures > MAX_FAILURES
        logger.warning("%s was lost, %d times in a row now: %s", host.name, host.failures, reason)
        if host.parked:
            self._roster.require_others(host, reason)
        wait_s = PARK_RETRY_S if host.parked else BACK_OFF_S * (2.0 ** (host.failures - 1) - 1.0)
        host.start_at = self._monotonic() + wait_s
        parked_s = wait_s if host.parked else 0.0
        self._reports.append(HostLost(host.name, host.kind, reason, self._roster.players_of(host.name), parked_s))

    def _end(self, host: Host) -> None:
        """End a host and forget what it owes."""
        self._kill(host, at_once=True)
        self._placement.forget(host.name)
        host.tasks.clear()
        host.is_busy = host.is_asked = False
        self._calls.forget(host)

    def _kill(self, host: Host, *, at_once: bool) -> None:
        """End a host; at once, by the kernel, where it may be frozen and could not hear Ray."""
        has_head, is_own = self._cluster.has_head, self._cluster.is_own
        kill_actor(host.handle, host.pid, through_ray=has_head, by_kernel=is_own and (at_once or not has_head))
        host.handle, host.pid = None, 0

    def _start_due(self) -> None:
        for host in self._roster.hosts.values():
            if host.handle is None and self._monotonic() >= host.start_at:
                self._spawn(host)

    def _ask_progress(self, budget_fraction: float) -> None:
        now = self._monotonic()
        for host in self._roster.hosts.values():
            due = now - host.asked_at >= PROGRESS_EVERY_S and not host.is_asked
            if host.kind != "actor_host" and host.pid and due:
                host.asked_at, host.is_asked = now, True
                with_rows = {"replays": self._roster.replay_handles()} if host.kind == "learner_host" else {}
                asked = host.handle.progress.remote(budget_fraction=budget_fraction, **with_rows)
                heard = functools.partial(self._heard_of, host)
                self._calls.expect(asked, host, heard, deadline_s=self._deadlines.progress_s)

    def _heard_of(self, host: Host, answer: list[LearnerProgress] | ReplayProgress) -> list[Report]:
        host.answered_at, host.is_asked = self._monotonic(), False
        if not isinstance(answer, ReplayProgress):
            return list(answer)
        if answer.has_worked:
            host.failures, host.parked = 0, False
        return [Remark(text) for text in answer.remarks]

    def _end_overdue(self) -> None:
        for call in self._calls.overdue():
            if call.host.handle is not None:
                self._lose(call.host, "it did not answer before its deadline")
