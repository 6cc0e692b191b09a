"""Replicas in threads and quadratics in float64, on which update modes have known answers."""

from __future__ import annotations

import concurrent.futures
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import COLUMNS, stack_stats
from league.agents.learner.replicas.replica_group import ring_bytes
from league.agents.learner.replicas.update_mode import StepResult, UpdateMode, make_update_mode
from league.envs.component_choice import Component


class Meeting:
    """Where R threads exchange what they have, all at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._slots: list[list[Any]] = [[None] * size, [None] * size]
        self._turns = [0] * size
        self._barrier = threading.Barrier(size, timeout=60.0)

    def swap(self, rank: int, given: Any) -> list[Any]:
        """What every rank gave."""
        slots = self._slots[self._turns[rank] % 2]  # two sets: nobody is two turns ahead of another
        self._turns[rank] += 1
        slots[rank] = given
        self._barrier.wait()
        return list(slots)


@dataclass
class ThreadReplicas:
    """A `ReplicaGroup` of threads that meet; sums are added in the order of ranks."""

    rank: int
    size: int
    meeting: Meeting
    num_bytes: int = 0

    def add_up(self, vector: Tensor) -> None:
        vector.copy_(self.total(vector))
        self.num_bytes += ring_bytes(vector.nbytes, rank=self.rank, size=self.size)

    def total(self, tensor: Tensor) -> Tensor:
        parts = self.meeting.swap(self.rank, tensor.clone())
        return torch.stack(parts).sum(dim=0)

    def gather(self, message: Tensor) -> list[Tensor]:
        self.num_bytes += message.nbytes * (self.size - 1)
        return self.meeting.swap(self.rank, message.clone())

    def exchange(self, sent: Mapping[int, Tensor], received: Mapping[int, Tensor]) -> None:
        self.num_bytes += sum(tensor.nbytes for tensor in sent.values())
        mail = self.meeting.swap(self.rank, {peer: tensor.clone() for peer, tensor in sent.items()})
        for peer, tensor in received.items():
            tensor.copy_(mail[peer][self.rank])
        unread = [peer for peer, letters in enumerate(mail) if self.rank in letters and peer not in received]
        assert not unread, f"replica {self.rank} did not take what {unread} sent"

    def take_bytes(self) -> int:
        taken, self.num_bytes = self.num_bytes, 0
        return taken


@dataclass
class Quadratic:
    """A `SteppedVector` of plain gradient descent on a (x - b)^2 / 2, once for each decision.

    Fields:
      values: float64 [P]. slope: a. goal: b, a number or [P]. max_norm: that a gradient is clipped to.
    """

    values: Tensor
    slope: float = 0.0
    goal: Tensor | float = 0.0
    count: float = 1.0
    max_norm: float = math.inf
    gradients: Tensor = field(init=False)

    def compute(self) -> Tensor:
        """The columns of the loss; fills the gradients."""
        self.gradients = self.count * self.slope * (self.values - self.goal)
        return stack_stats(**{name: self.count if name == "steps" else 0.0 for name in COLUMNS})

    def squared_norm(self) -> Tensor:
        return torch.dot(self.gradients, self.gradients)[None]

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        if count == 0.0:
            return 0.0
        norm = math.sqrt(squared_norm) / count
        if math.isfinite(norm):
            self.values -= learning_rate * self.gradients / (count * max(norm / self.max_norm, 1.0))
        return norm


@dataclass
class Member:
    """One replica: its vector, its mode, and the results of its steps."""

    vector: Quadratic
    mode: UpdateMode
    results: list[StepResult] = field(default_factory=list)

    def learn(self, steps: int, *, learning_rate: float) -> None:
        """That many steps."""
        for _ in range(steps):
            sums = self.vector.compute()
            self.results.append(self.mode.step(self.vector, sums, learning_rate=learning_rate))


def group_of(choice: Component, vectors: Sequence[Quadratic]) -> list[Member]:
    """One member for each vector."""
    meeting = Meeting(len(vectors))
    replicas = [ThreadReplicas(rank, len(vectors), meeting) for rank in range(len(vectors))]
    return [Member(vector, make_update_mode(choice, own)) for vector, own in zip(vectors, replicas, strict=True)]


def together(members: Sequence[Member], act: Callable[[Member], Any]) -> list[Any]:
    """Call all members at the same time; their answers by rank."""
    with concurrent.futures.ThreadPoolExecutor(len(members)) as threads:
        return [future.result() for future in [threads.submit(act, member) for member in members]]


def learn(members: Sequence[Member], steps: int, *, learning_rate: float) -> Tensor:
    """That many steps of all members; returns their weights, float64 [R, P]."""
    together(members, lambda member: member.learn(steps, learning_rate=learning_rate))
    return torch.stack([member.vector.values for member in members])
