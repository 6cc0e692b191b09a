"""Hogwild: replicas that step on the same weights and moments without a lock.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.replicas.all_reduce import AllReduce
from league.agents.learner.replicas.free_config import HogwildConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, FreeTally
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.shared_vector import SharedVector
from league.agents.learner.replicas.update_mode import SteppedVector, StepResult, UpdateMode


def hogwild(replicas: ReplicaGroup, options: HogwildConfig) -> UpdateMode:
    """The mode of one replica of a free group; of a replica alone, one that steps by itself."""
    del options  # the launcher reads them
    return Hogwild(replicas) if isinstance(replicas, FreeReplicas) else AllReduce(replicas)


class Hogwild:
    """A replica computes with weights that others change meanwhile; writes of two may overwrite each other.

    Source: Recht et al. 2011, Hogwild: a lock-free approach to parallelizing stochastic gradient descent; Mnih et al.
      2016, Asynchronous methods for deep reinforcement learning, section 4 (moments are shared too).
    """

    replicas_differ = False

    def __init__(self, replicas: FreeReplicas) -> None:
        self._memory = replicas.memory
        self.shared_values: SharedVector | None = self._memory.vector("weights")

    def start(self, values: Tensor) -> None:
        """Nothing: whoever built the shared weights first wrote them."""

    def begin(self, values: Tensor) -> None:
        """Nothing: the weights are those of all."""

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        """Step on the shared weights; as in the protocol."""
        *columns, squared_norm = torch.cat([sums, vector.squared_norm()]).tolist()
        stats = LossStats(*columns)
        norm = vector.step(count=stats.steps, squared_norm=squared_norm, learning_rate=learning_rate)
        finite = math.isfinite(norm)
        return StepResult(stats if finite else LossStats(), norm, skipped=int(not finite))

    def total(self, tensor: Tensor) -> Tensor:
        """The tensor itself."""
        return tensor

    def publish(self, values: Tensor) -> Tensor:
        """The shared weights, which keep changing."""
        assert self.shared_values is not None
        return torch.from_numpy(self.shared_values.values)

    def save(self) -> Mapping[str, Tensor]:
        """Nothing beside the moments, which are the optimizer's."""
        return {}

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        """Does nothing."""

    def take_tally(self) -> FreeTally:
        """Nothing to tell."""
        return FreeTally()

    def close(self) -> None:
        """Does nothing."""
