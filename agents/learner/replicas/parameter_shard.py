"""One part of a parameter server: takes gradients of its slice of the weights and steps with them.

Shape letter: n numbers of the slice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.learner.replicas.free_config import ParameterServerConfig
from league.agents.learner.replicas.server_rules import ReplicaClocks, stale_weight, weighted_mean
from league.agents.learner.replicas.shared_vector import SharedVector
from league.agents.learner.replicas.update_mode import SteppedVector


class ShardVector(SteppedVector, Protocol):
    """The slice and its optimizer, a `FlatOptimizer`."""

    def follow(self, consensus: Tensor) -> None:
        """Count a step, and move target network and average towards the weights."""
        ...


@dataclass(frozen=True)
class Push:
    """A gradient that lies in the memory of a replica.

    Fields:
      version: of the slice when the gradient's weights were fetched.
      count: decisions that it is the mean over. learning_rate: step size.
    """

    version: int
    count: float
    learning_rate: float


@dataclass(frozen=True)
class ShardAnswer:
    """The answer to a push, or to the wish to begin a batch.

    Fields:
      lag: of the gradient, in steps. weight: its factor, 0 if it was discarded.
    """

    lag: int = 0
    weight: float = 1.0


Due = list[tuple[int, ShardAnswer]]
"""Replicas that get an answer now."""


class ParameterShard:
    """The rules of one shard, without transport: every event gives the answers that are due after it.

    Args:
      vector: slice and optimizer; its values lie in `shared`.
      gradient_of: replica -> float32 [n], its newest gradient.
    """

    def __init__(
        self,
        vector: ShardVector,
        shared: SharedVector,
        options: ParameterServerConfig,
        *,
        gradient_of: Callable[[int], NDArray[np.float32]],
    ) -> None:
        self._vector = vector
        self._shared = shared
        self._options = options
        self._gradient_of = gradient_of
        self._clocks = ReplicaClocks(options.max_staleness)
        self._members: set[int] = set()
        self._wishes: list[int] = []
        self._pushed: dict[int, Push | None] = {}

    def join(self, rank: int) -> Due:
        """A replica has come."""
        self._members.add(rank)
        self._clocks.join(rank)
        return []

    def leave(self, rank: int) -> Due:
        """A replica is gone, and what it was about to do with it."""
        self._members.discard(rank)
        self._clocks.leave(rank)
        self._pushed.pop(rank, None)
        self._wishes = [other for other in self._wishes if other != rank]
        return [*self._whole_step(), *self._allowed()]

    def begin(self, rank: int) -> Due:
        """A replica wants to begin a batch; it is answered when it may."""
        self._wishes.append(rank)
        return self._allowed()

    def push(self, rank: int, push: Push | None) -> Due:
        """A replica has a gradient; None if its batch came to nothing."""
        self._clocks.end(rank)
        if self._options.sync:
            self._pushed[rank] = push
            return [*self._whole_step(), *self._allowed()]
        return [(rank, ShardAnswer() if push is None else self._apply(rank, push)), *self._allowed()]

    def _apply(self, rank: int, push: Push) -> ShardAnswer:
        """Step with one gradient, as old as it is."""
        lag = self._shared.version - push.version
        weight = stale_weight(lag, max_staleness=self._options.max_staleness, on_stale=self._options.on_stale)
        if weight:
            self._vector.gradients.copy_(torch.from_numpy(self._gradient_of(rank))).mul_(weight)
            self._step(push.learning_rate)
        return ShardAnswer(lag, weight)

    def _whole_step(self) -> Due:
        """Step with the mean of all gradients, once every replica has sent one."""
        if not self._pushed or set(self._pushed) < self._members:
            return []
        due = [(rank, ShardAnswer()) for rank in self._pushed]
        given = {rank: push for rank, push in self._pushed.items() if push is not None}
        self._pushed = {}
        if given:
            self._vector.gradients.zero_()
            weights = weighted_mean(push.count for push in given.values())
            for rank, weight in zip(given, weights, strict=True):
                self._vector.gradients.add_(torch.from_numpy(self._gradient_of(rank)), alpha=weight)
            self._step(next(iter(given.values())).learning_rate)
        return due

    def _step(self, learning_rate: float) -> None:
        """One step of the optimizer; the gradient is a mean whose norm the replica has clipped."""
        with self._shared.changing(version=self._shared.version + 1):
            self._vector.step(count=1.0, squared_norm=0.0, learning_rate=learning_rate)
        self._vector.follow(self._vector.values)

    def _allowed(self) -> Due:
        """Replicas that wait to begin and now may."""
        if self._options.on_stale != "wait":
            due = [(rank, ShardAnswer()) for rank in self._wishes]
            self._wishes = []
            return due
        allowed = [rank for rank in self._wishes if self._clocks.may_begin(rank)]
        for rank in allowed:
            self._clocks.begin(rank)
        self._wishes = [rank for rank in self._wishes if rank not in allowed]
        return [(rank, ShardAnswer()) for rank in allowed]
