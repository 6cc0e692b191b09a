"""The runtime in this process: one host of each kind, one task after the other, the same for the same seed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping

from agents.learner.build import choose_dtype
from agents.process import prepare_process
from agents.weights import Weights
from envs.registry import spec_of
from league.runtime.actor_host import ActorHost
from league.runtime.learner_host import LearnerHost
from league.runtime.protocol import (
    HostSetup,
    HostStarted,
    HostState,
    InstallPlayer,
    LeaseDone,
    PlayerInstalled,
    PlayLease,
    Report,
    ResetDone,
    ResetPlayer,
    SnapshotTaken,
    TakeCheckpoint,
    TakeSnapshot,
    Task,
)
from league.store.run_folder import WorkerStatus

ACTOR_HOST = "actor-0"
LEARNER_HOST = "learner-0"


class DirectClient:
    """Learners in the same process."""

    def __init__(self, learners: LearnerHost) -> None:
        self._learners = learners

    def push(self, player: str, chunk: bytes, *, share: float) -> Weights | None:
        """As in the protocol; the learner has learnt when this returns."""
        return self._learners.push(player, chunk, share=share)

    def weights(self, player: str) -> Weights:
        """As in the protocol."""
        return self._learners.weights(player)


class InProcessRuntime:
    """One host of each kind, driven by `poll`.

    Args:
      setup: what the hosts build.
    """

    def __init__(self, setup: HostSetup) -> None:
        self._setup = setup
        self._tasks: deque[Task] = deque()
        self._reports: list[Report] = []
        self._actor: ActorHost | None = None
        self._learners: LearnerHost | None = None
        self._client: DirectClient | None = None

    def start(self) -> None:
        """Build both hosts with one torch thread, whatever the machine has: more would change the sums."""
        prepare_process()
        spec = spec_of(self._setup.env)
        dtype = choose_dtype(spec, self._setup.network, self._setup.learner.precision)
        self._learners = LearnerHost(self._setup, dtype=dtype)
        self._actor = ActorHost(self._setup, name=ACTOR_HOST, dtype=dtype)
        self._client = DirectClient(self._learners)
        self._reports = [HostStarted(LEARNER_HOST, "learner_host"), HostStarted(ACTOR_HOST, "actor_host")]

    def submit(self, task: Task) -> None:
        """Put the task at the end of the one queue."""
        self._tasks.append(task)

    def poll(self, timeout_s: float) -> list[Report]:
        """Carry out the first task of the queue, however long it takes; reports that were there already come first."""
        if not self._reports and self._tasks:
            self._run(self._tasks.popleft())
        reports, self._reports = self._reports, []
        return reports

    def workers(self) -> tuple[WorkerStatus, ...]:
        """Both hosts are this process."""
        return (WorkerStatus("actor_host", os.getpid()), WorkerStatus("learner_host", os.getpid()))

    def save_hosts(self) -> HostState | None:
        """As in `ExactRuntime`."""
        assert self._actor is not None and not self._tasks, "a task is still waiting"
        return self._actor.save()

    def load_hosts(self, state: HostState, frozen: Mapping[str, Weights]) -> None:
        """As in `ExactRuntime`."""
        assert self._actor is not None and self._client is not None, "not started"
        self._drain()
        self._actor.load(state, frozen=frozen, learners=self._client)

    def close(self) -> None:
        """Close the envs and learners."""
        if self._actor is not None:
            self._actor.close()
        if self._learners is not None:
            self._learners.close()

    def _drain(self) -> None:
        while self._tasks:
            self._run(self._tasks.popleft())

    def _run(self, task: Task) -> None:
        assert self._learners is not None and self._actor is not None and self._client is not None, "not started"
        learners = self._learners
        if isinstance(task, PlayLease):
            lease = task.lease
            result = self._actor.play(lease, share=task.share, frozen=task.frozen, learners=self._client)
            self._reports.append(LeaseDone(ACTOR_HOST, lease.lease_id, lease.token, result.env_steps, result.outcomes))
            self._reports.extend(learners.progress())
        elif isinstance(task, InstallPlayer):
            learners.install(
                task.player,
                saved=task.saved,
                weights=task.weights,
                hyperparameters=task.hyperparameters,
                trained_steps=task.trained_steps,
            )
            self._reports.append(PlayerInstalled(task.player))
        elif isinstance(task, TakeSnapshot):
            weights = learners.weights(task.player)
            trained = learners.progress_of(task.player).trained_steps
            self._reports.append(SnapshotTaken(task.order_id, task.player, weights, trained))
        elif isinstance(task, ResetPlayer):
            learners.reset(task.player, task.weights)
            self._reports.append(ResetDone(task.order_id))
            self._reports.extend(learners.progress())  # now, not with the next lease: a stop in between must not show
        elif isinstance(task, TakeCheckpoint):
            self._reports.append(learners.checkpoint(task.player))
