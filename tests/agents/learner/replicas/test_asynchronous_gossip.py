"""Asynchronous gossip: averages of pairs keep the mean and bring replicas together, also past a torn peer."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.loss_stats import COLUMNS
from league.agents.learner.replicas.asynchronous_gossip import AsynchronousGossip
from league.agents.learner.replicas.config import GossipConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, GroupMemory

SUMS = torch.tensor([float(name == "steps") for name in COLUMNS], dtype=torch.float64)


class Plain:
    """Weights [P] that step by plain gradient descent."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values, self.gradients = values, torch.zeros_like(values)

    def squared_norm(self) -> torch.Tensor:
        return torch.dot(self.gradients, self.gradients)[None]

    def clip(self, *, count: float, squared_norm: float) -> float:
        return 0.0

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        self.values.sub_(self.gradients, alpha=learning_rate)
        return 0.0


def peers(folder: Path, number: int, size: int) -> tuple[list[AsynchronousGossip], list[Plain]]:
    memory = GroupMemory(folder, size, number, 1.0)
    modes = [AsynchronousGossip(FreeReplicas(memory, member=rank), options=GossipConfig()) for rank in range(number)]
    vectors = [Plain(torch.from_numpy(np.random.default_rng(rank).normal(size=size).astype(np.float32)))
               for rank in range(number)]  # fmt: skip
    for mode, vector in zip(modes, vectors, strict=True):
        mode.start(vector.values)
    return modes, vectors


def test_pairs_that_average_at_the_same_time_keep_the_mean_and_reach_consensus(tmp_path) -> None:
    modes, vectors = peers(tmp_path, 6, 500)
    leader = AsynchronousGossip(FreeReplicas(GroupMemory(tmp_path, 500, 6, 1.0), member=-1), options=GossipConfig())
    mean = leader.publish(torch.zeros(500)).clone()
    spread = torch.stack([vector.values for vector in vectors]).std(dim=0).mean()

    def average(mode: AsynchronousGossip, vector: Plain) -> None:
        for _ in range(150):
            mode.begin(vector.values)
            mode.step(vector, SUMS, learning_rate=1.0)

    threads = [threading.Thread(target=average, args=pair) for pair in zip(modes, vectors, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(leader.publish(torch.zeros(500)), mean, rtol=0.0, atol=1e-5)
    for mode, vector in zip(modes, vectors, strict=True):
        mode.begin(vector.values)
    assert torch.stack([vector.values for vector in vectors]).std(dim=0).mean() < 1e-3 * spread


def test_a_peer_that_was_killed_while_it_wrote_is_passed_over(tmp_path) -> None:
    modes, vectors = peers(tmp_path, 2, 4)
    with pytest.raises(KeyboardInterrupt), modes[1]._weights[1].changing(version=2):
        raise KeyboardInterrupt
    before = vectors[0].values.clone()
    modes[0].begin(vectors[0].values)
    vectors[0].gradients.fill_(1.0)
    assert modes[0].step(vectors[0], SUMS, learning_rate=0.5).stats.steps == 1.0
    torch.testing.assert_close(vectors[0].values, before - 0.5)
    modes[1].load(before, {})
    modes[0].begin(vectors[0].values)
    vectors[0].gradients.zero_()
    modes[0].step(vectors[0], SUMS, learning_rate=0.5)
    torch.testing.assert_close(vectors[0].values, before - 0.25)
