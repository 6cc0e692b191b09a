"""The step that a replica makes with its own gradient, while statistics are those of the whole group."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import COLUMNS, LossStats
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.update_mode import SteppedVector

_STEPS = COLUMNS.index("steps")


@dataclass(frozen=True)
class Shares:
    """The parts of all replicas in a step.

    Fields:
      stats: sums over the replicas whose gradient is finite.
      skipped: replicas whose gradient is not. replicas: R.
      norms: sum over the others of the norm of their summed gradient.
      own_steps: decisions of this replica; 0 if its gradient is not finite.
      own_squared_norm: of its summed gradient.
    """

    stats: LossStats
    skipped: int
    replicas: int
    norms: float
    own_steps: float
    own_squared_norm: float

    @property
    def mean_steps(self) -> float:
        """Decisions per replica that takes part."""
        return self.stats.steps / max(self.replicas - self.skipped, 1)

    @property
    def norm(self) -> float:
        """The mean norm of the gradients that are stepped with; not finite if no replica steps for that reason."""
        if self.skipped == self.replicas:
            return math.nan
        return self.norms / (self.replicas - self.skipped) / self.mean_steps if self.stats.steps else 0.0

    @property
    def is_step(self) -> bool:
        """True if the weights of any replica change."""
        return bool(self.stats.steps)


def shares_of(replicas: ReplicaGroup, vector: SteppedVector, sums: Tensor) -> Shares:
    """Add up what the replicas bring to a step; sums float64 [K] of this one, its gradients in the vector."""
    squared = vector.squared_norm().double()
    nothing, one = torch.zeros_like(sums), torch.ones_like(squared)
    takes_part = torch.isfinite(squared)
    own = torch.cat([sums, squared.sqrt(), 0.0 * one])
    shared = torch.where(takes_part, own, torch.cat([nothing, 0.0 * one, one]))
    # The only wait for the device in an update.
    *columns, norms, skipped, own_steps, squared_norm = torch.cat(
        [replicas.total(shared), shared[_STEPS : _STEPS + 1], squared]
    ).tolist()
    return Shares(LossStats(*columns), int(skipped), replicas.size, norms, own_steps, squared_norm)


def step_alone(vector: SteppedVector, shares: Shares, *, learning_rate: float) -> None:
    """Step with this replica's own gradient, clipped by its own norm.

    It is divided by the mean number of decisions of a replica. Replicas with more decisions then count for more. For
    plain SGD without a clip, the mean of all steps is the step of one learner with the whole batch.
    """
    if shares.own_steps:
        vector.step(count=shares.mean_steps, squared_norm=shares.own_squared_norm, learning_rate=learning_rate)
