"""All-reduce: every replica steps with the sum of all gradients, exactly as one replica with the whole batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.update_mode import SteppedVector, StepResult


class AllReduce:
    """Equal gradients keep equal weights equal."""

    replicas_differ = False

    def __init__(self, replicas: ReplicaGroup) -> None:
        self._replicas = replicas

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        """As in the protocol."""
        self._replicas.add_up(vector.gradients)
        # The only wait for the device in an update.
        *columns, squared_norm = torch.cat([self.total(sums), vector.squared_norm()]).tolist()
        stats = LossStats(*columns)
        norm = vector.step(count=stats.steps, squared_norm=squared_norm, learning_rate=learning_rate)
        return StepResult(stats, norm, bytes_sent=self._replicas.take_bytes())

    def total(self, tensor: Tensor) -> Tensor:
        """As in the protocol."""
        return self._replicas.total(tensor)

    def publish(self, values: Tensor) -> Tensor:
        """The weights themselves."""
        return values

    def save(self) -> Mapping[str, Tensor]:
        """Nothing."""
        return {}

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        """Does nothing."""
