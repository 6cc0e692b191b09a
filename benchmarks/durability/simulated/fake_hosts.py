"""The answers of healthy hosts by rule, without a process or a game: the base of every simulated runtime.

A runtime over them decides alone when a report arrives, and whether it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from league.agents.nets.network import build_network
from league.agents.restart_state import Counters, counters_in, restart_state, weights_alone
from league.agents.weights import Weights, layout_of
from league.config.run_config import RunConfig
from league.core.state.commands import FinishLease
from league.core.state.records import AssignmentOutcome, Lease, Progress
from league.envs.registry import spec_of
from league.hosts.protocol import (
    CheckpointTaken,
    InstallPlayer,
    LearnerProgress,
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
from league.store.run_folder import WorkerStatus

MARKER = "reset"
"""Entry of a restart state: the directive of the reset from which its weights descend; -1 where that is not known."""


@dataclass
class FakeLearner:
    """Progress of one player. marker: the directive of the reset from which its weights descend."""

    version: int = 0
    trained_steps: int = 0
    marker: int = 0


class FakeHosts:
    """The parts that all runtimes without hosts share.

    Args:
      weights: whose layout the players' weights have.
      steps: env steps of a lease that is long enough. updates: of a lease that trains. steps_per_update: of training.
      games: of every assignment of a lease.
    Attributes:
      learners: player -> its progress.
    """

    def __init__(
        self, weights: Weights, *, steps: int = 100, updates: int = 2, steps_per_update: int = 50, games: int = 2
    ) -> None:
        self.weights = weights
        self.learners: dict[str, FakeLearner] = {}
        self._steps, self._updates, self._steps_per_update, self._games = steps, updates, steps_per_update, games

    def start(self) -> None:
        """Nothing to bring up."""

    def add_actor_host(self) -> str:
        """Not every one can."""
        raise NotImplementedError

    def remove_actor_host(self, name: str) -> None:
        """Not every one can."""
        raise NotImplementedError

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        """Not every one can."""
        raise NotImplementedError

    def keeps(self, snapshot: str) -> bool:
        """Of none."""
        return False

    def nodes(self) -> tuple[NodeInfo, ...]:
        """None: they run on no machine."""
        return ()

    def workers(self) -> tuple[WorkerStatus, ...]:
        """None that a person could look at."""
        return ()

    def close(self) -> None:
        """Nothing to end."""

    def learner(self, player: str) -> FakeLearner:
        """The progress of a player."""
        return self.learners.setdefault(player, FakeLearner())

    def progress(self, player: str) -> Progress:
        """The same, as it is reported."""
        learner = self.learner(player)
        return Progress(player, learner.version, learner.trained_steps)

    def answer(self, task: Task) -> list[Report]:
        """The reports of hosts that are well."""
        if isinstance(task, PlayLease):
            return self.play(task.lease)
        if isinstance(task, InstallPlayer):
            self.install(task)
            return [PlayerInstalled(task.player)]
        if isinstance(task, TakeSnapshot):
            steps = self.learner(task.player).trained_steps
            return [SnapshotTaken(task.directive_id, task.player, self.frozen(task.player), steps)]
        if isinstance(task, ResetPlayer):
            return [ResetDone(task.directive_id)]
        if isinstance(task, Reconfigure):
            return []
        assert isinstance(task, TakeCheckpoint)
        return [CheckpointTaken(self.progress(task.player), self.saved(task.player))]

    def play(self, lease: Lease) -> list[Report]:
        """The outcomes of a lease; one that trains also brings its learner on."""
        steps = self.steps_of(lease)
        outcomes = outcomes_of(lease, games=self._games)
        done = LeaseDone(lease.host, FinishLease(lease.lease_id, lease.token, steps, outcomes))
        if lease.home is None:
            return [done]
        learner = self.learner(lease.home)
        learner.version += self._updates
        learner.trained_steps += self._updates * self._steps_per_update
        return [done, LearnerProgress(self.progress(lease.home), None, 0)]

    def steps_of(self, lease: Lease) -> int:
        """Env steps that a lease brings: rating leases after training are too short for all of them."""
        return min(self._steps, lease.steps * lease.num_envs)

    def install(self, task: InstallPlayer) -> None:
        """A learner starts from a restart state, or else from weights."""
        if task.saved is not None:
            counters, marker = counters_in(task.saved), int(task.saved[MARKER][0])
            self.learners[task.player] = FakeLearner(counters.version, counters.trained_steps, marker)
        else:
            version = 0 if task.weights is None else task.weights.version
            self.learners[task.player] = FakeLearner(version, task.trained_steps)

    def frozen(self, player: str) -> Weights:
        """Weights of a player, other ones for each version."""
        version = self.learner(player).version
        return replace(self.weights, vector=self.weights.vector + np.float32(version), version=version)

    def saved(self, player: str) -> dict[str, NDArray[np.generic]]:
        """Restart state of a player; no two players share a file."""
        learner = self.learner(player)
        name = np.frombuffer(player.encode(), np.uint8).astype(np.float32)
        return restart_state(
            {**weights_alone(self.weights.vector), MARKER: np.array([learner.marker])},
            Counters(learner.version, learner.trained_steps),
            name,
        )


def zero_weights(config: RunConfig) -> Weights:
    """Weights of a configuration's network that are all 0."""
    layout = layout_of(build_network(spec_of(config.env), config.network, seed=0))
    return Weights(np.zeros(layout.size, np.float32), layout, 0)


def outcomes_of(lease: Lease, *, games: int = 2) -> tuple[AssignmentOutcome, ...]:
    """Games of every assignment, half of them won by either side."""
    half = games // 2
    return tuple(
        AssignmentOutcome(row.policies, games, 0, 7 * games, ((0, half), (half, 0)), ((0, 0), (0, 0)), (0.0, 0.0))
        for row in lease.assignments
    )
