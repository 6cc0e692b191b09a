"""Local SGD and DiLoCo: replicas learn alone for a while, then agree on an outer step along their mean way.

Shape letter: P parameters held here.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.replicas.compressed_sum import CompressedSum
from league.agents.learner.replicas.config import LocalSGDConfig
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.step_alone import shares_of, step_alone
from league.agents.learner.replicas.update_mode import PLACE, SteppedVector, StepResult


class LocalSGD:
    """The consensus is the last outer point; the moments of the inner optimizer stay those of each replica.

    Source: Stich 2019, Local SGD converges fast and communicates little, algorithm 1 (outer learning rate 1, no
      momentum); Douillard et al. 2023, DiLoCo, algorithm 1 (0.7 and Nesterov 0.9).
    """

    def __init__(self, replicas: ReplicaGroup, *, options: LocalSGDConfig) -> None:
        self._replicas = replicas
        self._options = options
        self._sum = CompressedSum(replicas, options.compression, place=PLACE)
        self._outer_point: Tensor | None = None
        self._momentum: Tensor | None = None
        self._inner_steps = 0
        self._unshared = 0.0
        self.replicas_differ = replicas.size > 1

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        if self._outer_point is None:
            self._outer_point = vector.values.clone()
        shares = shares_of(self._replicas, vector, sums)
        step_alone(vector, shares, learning_rate=learning_rate)
        self._unshared += shares.own_steps
        self._inner_steps += shares.is_step
        if self._inner_steps >= self._options.period and shares.is_step:
            self._agree(vector.values)
        return StepResult(
            shares.stats, shares.norm, shares.skipped, self._replicas.take_bytes(), unshared=self._unshared
        )

    def total(self, tensor: Tensor) -> Tensor:
        return self._replicas.total(tensor)

    def publish(self, values: Tensor) -> Tensor:
        """The last outer point; the weights themselves of a replica alone."""
        return values if self._outer_point is None or self._replicas.size == 1 else self._outer_point

    def save(self) -> Mapping[str, Tensor]:
        """The last outer point and the steps since then, the outer momentum, and what compression has left out."""
        saved = dict(self._sum.save())
        if self._outer_point is not None and self._replicas.size > 1:
            saved |= {"outer_point": self._outer_point, "inner_steps": torch.tensor(self._inner_steps)}
        if self._momentum is not None:
            saved["outer_momentum"] = self._momentum
        return saved

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        self._outer_point = saved["outer_point"].clone() if "outer_point" in saved else values.clone()
        self._momentum = saved["outer_momentum"].clone() if "outer_momentum" in saved else None
        self._inner_steps = int(saved["inner_steps"]) if "inner_steps" in saved else 0
        self._unshared = 0.0
        self._sum.load(saved)

    def _agree(self, values: Tensor) -> None:
        """Make the outer step, from which every replica continues."""
        self._inner_steps, self._unshared = 0, 0.0
        if self._replicas.size == 1:
            return
        assert self._outer_point is not None
        outer, way = self._options.outer, self._outer_point - values
        self._sum.add_up(way)
        way /= self._replicas.size
        if outer.momentum:
            self._momentum = torch.zeros_like(way) if self._momentum is None else self._momentum
            self._momentum.mul_(outer.momentum).add_(way)
            way = way.add(self._momentum, alpha=outer.momentum) if outer.nesterov else self._momentum
        self._outer_point.sub_(way, alpha=outer.learning_rate)
        values.copy_(self._outer_point)
