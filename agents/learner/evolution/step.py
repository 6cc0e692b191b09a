"""The step of an evolution strategy, from indices and weights of perturbations: the same bits on every host.

Shape letters: P weights of the network, n pairs of episodes.

Nothing here is a matrix product: their sums depend on the machine. Every number is one float32 operation on the numbers
before it, in the order of the pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.evolution.noise_table import NoiseTable

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's decays and the number that keeps it from dividing by 0, as in the code of Salimans et al. 2017."""


@dataclass(frozen=True)
class EvolutionStep:
    """Everything that a host needs to take a step that another one took.

    Fields:
      version: of the weights after it.
      rate: Adam's step size with its correction of the bias. It is sent because powers differ between machines.
      weight_decay: times the weights is added to the gradient.
      indices: int32 [n], perturbations in the noise table, ascending.
      weights: float32 [n], rank of the perturbation minus that of its opposite, divided by 2 n.
      cap: decisions after which an episode of the weights after it is cut; 0 for never.
    """

    version: int
    rate: float
    weight_decay: float
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    cap: int = 0

    @property
    def num_bytes(self) -> int:
        """On the wire, without what names the fields."""
        return self.indices.nbytes + self.weights.nbytes + 24


@dataclass(frozen=True)
class EvolutionState:
    """Weights and Adam's moments. Every array is float32 [P]; nobody writes to them.

    Fields:
      steps: taken since the moments were 0.
    """

    values: NDArray[np.float32]
    first: NDArray[np.float32]
    second: NDArray[np.float32]
    steps: int = 0

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> EvolutionState:
        """The state of new weights."""
        return cls(values, np.zeros_like(values), np.zeros_like(values))

    def after(self, step: EvolutionStep, noise: NoiseTable) -> EvolutionState:
        """The state after a step.

        Source: Salimans et al. 2017, algorithm 2; the sum, the decay and Adam as in `es.py` and `optimizers.py` of its
        code: there is no division by sigma, which Adam would cancel.
        """
        gradient = np.multiply(self.values, np.float32(step.weight_decay))
        gradient -= weighted_noise(step, noise, size=len(self.values))
        first = np.float32(BETA1) * self.first + np.float32(1 - BETA1) * gradient
        second = np.float32(BETA2) * self.second + np.float32(1 - BETA2) * (gradient * gradient)
        change = np.float32(step.rate) * first / (np.sqrt(second) + np.float32(EPSILON))
        values = np.asarray(self.values - change, np.float32)
        moments = np.asarray(first, np.float32), np.asarray(second, np.float32)
        return EvolutionState(values, *moments, self.steps + 1)


def weighted_noise(step: EvolutionStep, noise: NoiseTable, *, size: int) -> NDArray[np.float32]:
    """float32 [size], the weighted sum of the perturbations: where returns rise."""
    total, part = np.zeros(size, np.float32), np.empty(size, np.float32)
    for index, weight in zip(step.indices.tolist(), step.weights, strict=True):
        np.multiply(noise.get(index, size), weight, out=part)
        total += part
    return total


def adam_rate(learning_rate: float, steps: int) -> float:
    """Adam's step size for its `steps`-th step, from 1."""
    return learning_rate * math.sqrt(1 - BETA2**steps) / (1 - BETA1**steps)
