"""The runtime in this process: one host of each kind, one task after the other, the same for the same seed."""

from __future__ import annotations

import functools
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Mapping

import torch

from league.agents.acting.central.central_policy import DirectInferenceClient
from league.agents.acting.central.inference_host import InferenceHost
from league.agents.learner.build import choose_dtype, default_device
from league.agents.learner.errors import LearnerError
from league.agents.nets.network import Network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.device_unrolls import DeviceUnrolls
from league.agents.weights import Weights
from league.envs.protocol import EnvError, EnvSpec
from league.envs.registry import spec_of
from league.errors import LeagueError, LearningFailed
from league.hosts.actors.actor_host import ActorHost
from league.hosts.device_host import DeviceActorHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import (
    HostStarted,
    HostState,
    HostStuck,
    InstallPlayer,
    LeaseDone,
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
from league.hosts.setup import HostSetup
from league.processes.task_thread import TaskThread, watched
from league.store.run_folder import WorkerStatus

logger = logging.getLogger(__name__)

ACTOR_HOST = "actor-0"
LEARNER_HOST = "learner-0"

CLOSE_S = 10.0
"""Longest wait for one call of the env to close."""

IDLE_S = 0.01
"""Rest of a poll without a task."""


class DirectLearnerClient:
    """Learners in the same process."""

    def __init__(self, learners: SyncLearnerHost) -> None:
        self._learners = learners

    def push(self, player: str, chunk: bytes) -> Weights | None:
        """As in the protocol; the learner has learnt when this returns.

        Raises:
          LearningFailed: it cannot learn on.
        """
        try:
            return self._learners.push(player, chunk)
        except LearnerError as error:
            raise LearningFailed(player, str(error)) from error

    def push_rows(self, player: str, rows: DeviceUnrolls) -> Weights | None:
        """As `push`, of rows on the learner's device."""
        try:
            return self._learners.push_rows(player, rows)
        except LearnerError as error:
            raise LearningFailed(player, str(error)) from error

    def weights(self, player: str) -> Weights:
        return self._learners.published(player)


class InProcessRuntime:
    """One host of each kind, in one thread beside the caller's, which can thus report a hang and continue without it.

    Args:
      setup: what the hosts build.
      players: every player.
      deadline_s: for one call of the env.
    """

    def __init__(self, setup: HostSetup, *, players: tuple[str, ...], deadline_s: float) -> None:
        self._setup = setup
        self._players = players
        self._deadline_s = deadline_s
        self._thread = self._new_thread()
        self._tasks: deque[Task] = deque()
        self._reports: list[Report] = []
        self._actor: ActorHost | None = None
        self._learners: SyncLearnerHost | None = None
        self._client: DirectLearnerClient | None = None

    def start(self) -> None:
        """Build both hosts with one torch thread, whatever the machine has: more would change the sums."""
        self._thread.run(self._build)
        self._reports = [
            HostStarted(LEARNER_HOST, "learner_host", self._players),
            HostStarted(ACTOR_HOST, "actor_host"),
        ]

    def submit(self, task: Task) -> None:
        """Put the task at the end of the one queue."""
        self._tasks.append(task)

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        """Begin the next task of the queue, and wait for it so long; reports that were there already come first.

        A task learns under the budget fraction of the poll that begins it, however long it takes.
        The reports of a task come together once it has ended: how long it took must not show in their order.

        Raises:
          EnvError: a call of the env hangs. And whatever a task raises.
        """
        if self._thread.busy or not self._reports:
            if not self._thread.busy and self._tasks:
                task = self._tasks.popleft()
                if self._learners is not None:
                    self._learners.budget_fraction = budget_fraction
                self._thread.begin(lambda: self._run(task))
            if not self._thread.busy:  # nobody has work: every player is paused, or waits for something else
                time.sleep(min(timeout_s, IDLE_S))
            self._thread.wait(timeout_s)
            stuck = self._thread.stuck()
            if stuck is not None:
                return [HostStuck(ACTOR_HOST, stuck)]
            if self._thread.busy:
                return []
        reports, self._reports = self._reports, []
        return reports

    def add_actor_host(self) -> str:
        """As in the protocol; this process has one."""
        raise LeagueError("runtime.kind: inprocess has one actor host; use kind: ray for more")

    def remove_actor_host(self, name: str) -> None:
        """As in the protocol; its one host stays until the end."""
        raise LeagueError("runtime.kind: inprocess has one actor host, which stays")

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        """As in the protocol; its one host stays until the end."""
        raise LeagueError("runtime.kind: inprocess has one learner host, which stays")

    def keeps(self, snapshot: str) -> bool:
        """Of none: the weights of a lease are handed on as they are."""
        return False

    def workers(self) -> tuple[WorkerStatus, ...]:
        """Both hosts are this process."""
        hosts = (("actor_host", ACTOR_HOST), ("learner_host", LEARNER_HOST))
        return tuple(WorkerStatus(kind, os.getpid(), name=name) for kind, name in hosts)

    def nodes(self) -> tuple[NodeInfo, ...]:
        """This machine."""
        return (
            NodeInfo(socket.gethostname(), "127.0.0.1", float(os.cpu_count() or 1), 0.0, (ACTOR_HOST, LEARNER_HOST)),
        )

    @property
    def has_work(self) -> bool:
        return bool(self._tasks or self._reports) or self._thread.busy

    def save_hosts(self) -> HostState | None:
        if self._actor is None or self._tasks or self._thread.busy:  # given up, or still in the middle of a task
            return None
        return self._actor.save()

    def load_hosts(self, state: HostState, frozen: Mapping[str, Weights]) -> None:
        assert self._actor is not None and self._client is not None, "not started"
        actor, client = self._actor, self._client
        while self._tasks:
            self._thread.run(functools.partial(self._run, self._tasks.popleft()))
        self._thread.run(lambda: actor.load(state, frozen=frozen, learners=client))

    def abandon(self) -> None:
        if not self._thread.busy:
            return
        self._thread.give_up()
        self._thread = self._new_thread()
        self._tasks = deque(task for task in self._tasks if not isinstance(task, PlayLease))
        self._actor = None  # its env is in a call that may never end, and cannot be closed

    def close(self) -> None:
        """Close the envs and learners; one that is in a call that may never end is left."""
        self.abandon()
        self._thread.give_up()
        if self._actor is not None:
            self._close_envs(self._actor)
            self._actor = None
        if self._learners is not None:
            self._learners.close()

    def _close_envs(self, actor: ActorHost) -> None:
        """Close the envs; one that does not come back from it is left, with a line in the log."""
        try:
            watched(actor.close, deadline_s=CLOSE_S, say=logger.warning)
        except EnvError as error:
            logger.warning("%s", error)

    def _new_thread(self) -> TaskThread:
        advice = (
            f"Mend the env, or raise runtime.lease_deadline_s ({self._deadline_s:g}) where a call may take so long."
        )
        return TaskThread(deadline_s=self._deadline_s, advice=advice)

    def _build(self) -> None:
        prepare_process()
        spec = spec_of(self._setup.env)
        dtype = choose_dtype(spec, self._setup.network, self._setup.learner.precision)
        self._learners = SyncLearnerHost(self._setup, dtype=dtype)
        self._client = DirectLearnerClient(self._learners)
        self._actor = self._actor_host(dtype)

    def _actor_host(self, dtype: torch.dtype) -> ActorHost:
        if self._setup.games == "device":
            return DeviceActorHost(self._setup, name=ACTOR_HOST, dtype=dtype, device=default_device())

        def connect(spec: EnvSpec, network: Network, capacity: int) -> DirectInferenceClient:
            return DirectInferenceClient(InferenceHost(network, dtype=dtype), spec, network, capacity=capacity)

        return ActorHost(self._setup, name=ACTOR_HOST, dtype=dtype, connect=connect if self._setup.inference else None)

    def _run(self, task: Task) -> None:
        assert self._learners is not None and self._client is not None, "not started"
        learners = self._learners
        if isinstance(task, PlayLease):
            assert self._actor is not None, "its env hangs"
            self._actor.add_networks(task.networks)
            answer = self._actor.play(task.lease, frozen=task.frozen, learners=self._client)
            self._reports.append(LeaseDone(ACTOR_HOST, answer, self._actor.take_failures()))
            self._reports.extend(learners.progress())
        elif isinstance(task, InstallPlayer):
            learners.install(task)
            self._reports.append(PlayerInstalled(task.player))
        elif isinstance(task, TakeSnapshot):
            newest = learners.newest(task.player)
            trained_steps = newest.progress.trained_steps
            self._reports.append(SnapshotTaken(task.directive_id, task.player, newest.weights, trained_steps))
        elif isinstance(task, ResetPlayer):
            learners.reset(task.player, task.weights)
            self._reports.append(ResetDone(task.directive_id))
            self._reports.extend(learners.progress())  # now, not with the next lease: a stop in between must not show
        elif isinstance(task, Reconfigure):
            learners.reconfigure(task)
        elif isinstance(task, TakeCheckpoint):
            self._reports.append(learners.checkpoint(task.player))
