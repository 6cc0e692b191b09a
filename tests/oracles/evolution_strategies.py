"""The update of evolution strategies as published, transcribed: `es.py` and `optimizers.py` of its authors' code.

Source: Salimans et al. 2017; github.com/openai/evolution-strategies-starter, `run_master`, `Adam` and
`compute_centered_ranks`. Float64, one number after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def compute_ranks(x: Sequence[float]) -> list[int]:
    """Ranks in [0, len(x))."""
    order = sorted(range(len(x)), key=lambda index: x[index])
    ranks = [0] * len(x)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks


def compute_centered_ranks(x: Sequence[float]) -> list[float]:
    """Ranks in [-.5, .5]."""
    return [rank / (len(x) - 1) - 0.5 for rank in compute_ranks(x)]


class Adam:
    def __init__(self, theta: Sequence[float], stepsize: float) -> None:
        self.theta = list(theta)
        self.stepsize, self.beta1, self.beta2, self.epsilon = stepsize, 0.9, 0.999, 1e-08
        self.m, self.v, self.t = [0.0] * len(self.theta), [0.0] * len(self.theta), 0

    def update(self, globalg: Sequence[float]) -> None:
        self.t += 1
        a = self.stepsize * math.sqrt(1 - self.beta2**self.t) / (1 - self.beta1**self.t)
        for i, g in enumerate(globalg):
            self.m[i] = self.beta1 * self.m[i] + (1 - self.beta1) * g
            self.v[i] = self.beta2 * self.v[i] + (1 - self.beta2) * (g * g)
            self.theta[i] += -a * self.m[i] / (math.sqrt(self.v[i]) + self.epsilon)


def es_update(
    optimizer: Adam, noise: Sequence[Sequence[float]], returns_n2: Sequence[tuple[float, float]], *, l2coeff: float
) -> None:
    """One update from returns with each perturbation and with its opposite."""
    flat = [value for pair in returns_n2 for value in pair]
    ranks = compute_centered_ranks(flat)
    g = [0.0] * len(optimizer.theta)
    for pair, perturbation in enumerate(noise):
        weight = ranks[2 * pair] - ranks[2 * pair + 1]
        for i, number in enumerate(perturbation):
            g[i] += weight * number
    g = [value / len(flat) for value in g]
    optimizer.update([-value + l2coeff * theta for value, theta in zip(g, optimizer.theta, strict=True)])
