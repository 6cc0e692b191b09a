"""The published update of OpenAI Five's qualities, one game at a time. Source: Berner et al. 2019, appendix N."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence


def chances_after(win_rates: Sequence[float], *, games: int, rate: float, seed: int) -> list[float]:
    """Chance of meeting each snapshot after so many games, each against one drawn by the qualities of that moment."""
    rng = random.Random(seed)
    qualities = [0.0] * len(win_rates)
    for _ in range(games):
        chances = softmax(qualities)
        met = rng.choices(range(len(win_rates)), weights=chances)[0]
        if rng.random() < win_rates[met]:
            qualities[met] -= rate / (len(win_rates) * chances[met])
    return softmax(qualities)


def softmax(scores: Sequence[float]) -> list[float]:
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]
