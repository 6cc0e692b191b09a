"""All-reduce: every replica steps with the sum of all gradients, exactly as one replica with the whole batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.replicas.compressed_sum import CompressedSum
from league.agents.learner.replicas.config import AllReduceConfig
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.step_alone import shares_of
from league.agents.learner.replicas.update_mode import PLACE, SteppedVector, StepResult

EXACT = AllReduceConfig()
"""Nothing is left out."""


class AllReduce:
    """Equal gradients keep equal weights equal.

    With a compression, a replica whose gradient is not finite sends what it still owes, and its decisions do not count.
    """

    def __init__(self, replicas: ReplicaGroup, *, options: AllReduceConfig = EXACT) -> None:
        self._replicas = replicas
        self._sum = CompressedSum(replicas, options.compression, place=PLACE)
        self.replicas_differ = not self._sum.is_exact

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        if not self._sum.is_exact:
            return self._compressed_step(vector, sums, learning_rate=learning_rate)
        self._sum.add_up(vector.gradients)
        # The only wait for the device in an update.
        *columns, squared_norm = torch.cat([self.total(sums), vector.squared_norm()]).tolist()
        stats = LossStats(*columns)
        norm = vector.step(count=stats.steps, squared_norm=squared_norm, learning_rate=learning_rate)
        return StepResult(stats, norm, bytes_sent=self._replicas.take_bytes())

    def total(self, tensor: Tensor) -> Tensor:
        return self._replicas.total(tensor)

    def publish(self, values: Tensor) -> Tensor:
        """The weights themselves."""
        return values

    def save(self) -> Mapping[str, Tensor]:
        """The part that compressed messages have left out so far."""
        return self._sum.save()

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        self._sum.load(saved)

    def _compressed_step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        shares = shares_of(self._replicas, vector, sums)
        norm = shares.norm
        if shares.is_step:
            if not shares.own_steps:
                vector.gradients.zero_()
            self._sum.add_up(vector.gradients)
            squared_norm = float(vector.squared_norm())
            norm = vector.step(count=shares.stats.steps, squared_norm=squared_norm, learning_rate=learning_rate)
        return StepResult(shares.stats, norm, shares.skipped, self._replicas.take_bytes())
