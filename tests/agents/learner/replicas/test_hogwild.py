"""Hogwild on the problem of its paper: sparse logistic regression, with threads that overwrite each other's steps."""

from __future__ import annotations

import threading

import numpy as np
import torch

from league.agents.learner.algorithms.loss_stats import COLUMNS
from league.agents.learner.config import LearnerConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, GroupMemory
from league.agents.learner.replicas.hogwild import Hogwild
from league.agents.learner.step.optimizer import FlatOptimizer

EXAMPLES, FEATURES, ACTIVE, EPOCHS, THREADS = 3000, 400, 6, 4, 4
SUMS = torch.tensor([float(name == "steps") for name in COLUMNS], dtype=torch.float64)

rng = np.random.default_rng(0)
INDICES = rng.permuted(np.tile(np.arange(FEATURES), (EXAMPLES, 1)), axis=1)[:, :ACTIVE]
TRUTH = rng.normal(size=FEATURES)
LABELS = (rng.random(EXAMPLES) < 1.0 / (1.0 + np.exp(-TRUTH[INDICES].sum(axis=1)))).astype(np.float64)


def loss(weights: np.ndarray) -> float:
    """Mean logistic loss in float64."""
    scores = weights.astype(np.float64)[INDICES].sum(axis=1)
    return float(np.mean(np.logaddexp(0.0, scores) - LABELS * scores))


class Sparse:
    """Weights in shared memory; a step writes those few that the example reads."""

    def __init__(self, mode: Hogwild) -> None:
        assert mode.shared_values is not None
        self.values = torch.from_numpy(mode.shared_values.values)
        self.gradients, self.indices = torch.zeros(ACTIVE), torch.zeros(ACTIVE, dtype=torch.int64)

    def see(self, example: int) -> None:
        self.indices = torch.from_numpy(INDICES[example])
        score = float(self.values[self.indices].sum())
        self.gradients.fill_(1.0 / (1.0 + np.exp(-score)) - LABELS[example])

    def squared_norm(self) -> torch.Tensor:
        return torch.dot(self.gradients, self.gradients)[None]

    def clip(self, *, count: float, squared_norm: float) -> float:
        return squared_norm

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        self.values[self.indices] -= learning_rate * self.gradients
        return squared_norm


def train(folder, threads: int) -> np.ndarray:  # type: ignore[no-untyped-def,type-arg]
    folder.mkdir()
    memory = GroupMemory(folder, FEATURES, threads, 1.0)

    def learn(member: int) -> None:
        mode = Hogwild(FreeReplicas(memory, member=member))
        vector = Sparse(mode)
        for _ in range(EPOCHS):
            for example in range(member, EXAMPLES, threads):
                vector.see(example)
                assert mode.step(vector, SUMS, learning_rate=0.2).stats.steps == 1.0

    running = [threading.Thread(target=learn, args=(member,)) for member in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return memory.vector("weights").values.copy()


def test_threads_without_a_lock_reach_the_loss_of_one(tmp_path) -> None:
    alone = loss(train(tmp_path / "one", 1))
    assert alone < 0.7 * loss(np.zeros(FEATURES))
    # A busy machine may hold a thread up for long, whose last steps are then of old weights: not every time.
    tries = (loss(train(tmp_path / f"four-{number}", THREADS)) for number in range(3))
    assert any(abs(together - alone) < 0.02 * alone for together in tries)


def test_a_pass_with_a_target_network_leaves_the_weights_of_all_as_they_are(tmp_path) -> None:  # type: ignore[no-untyped-def]
    network = torch.nn.Linear(3, 2)
    memory = GroupMemory(tmp_path, 8, 2, 1.0)
    mode = Hogwild(FreeReplicas(memory, member=0))
    assert mode.shared_values is not None
    shared = torch.from_numpy(mode.shared_values.values)
    optimizer = FlatOptimizer(network, LearnerConfig(), keep_target=True, values=shared)
    shared[:] = torch.arange(8.0)
    with optimizer.target_weights():
        assert network.weight.abs().sum() == 0.0, "the target is of the start"
        assert shared.tolist() == list(range(8))
        shared[0] = 9.0  # another replica steps meanwhile
    assert network.weight[0, 0] == 9.0
