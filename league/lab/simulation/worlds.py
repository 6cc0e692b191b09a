"""Simulated policies: how they win, and what they learn from whom they meet. The league's rules run on them for real.

Shape letters: D numbers of a policy, A actions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Policy = NDArray[np.float64]
"""float64 [D]; what the numbers mean is the world's affair."""
CERTAIN = 1e-12
"""Smallest chance to win or to lose."""


class World(Protocol):
    """A game and learners for it, in a few lines of arithmetic."""

    def first(self, rng: np.random.Generator) -> Policy:
        """An untrained policy."""
        ...

    def win_rate(self, first: Policy, second: Policy) -> float:
        """Chance that the first beats the second."""
        ...

    def learn(self, policy: Policy, met: Sequence[tuple[Policy, float]], steps: int, rate: float) -> Policy:
        """The policy after more steps against the policies met, with their probabilities. rate: 1 is as configured."""
        ...


class SkillWorld:
    """One number per policy that grows more slowly the higher it is, and only from games whose result is open.

    Args:
      gain: log-odds won by each e-fold of training. steps: trained steps of the first one.
    """

    def __init__(self, *, gain: float = 0.8, steps: float = 2e6) -> None:
        self._gain = gain
        self._steps = steps

    def first(self, rng: np.random.Generator) -> Policy:
        """About zero."""
        return 0.1 * rng.normal(size=1)

    def win_rate(self, first: Policy, second: Policy) -> float:
        """Logistic in the difference."""
        return _logistic(float(first[0] - second[0]))

    def learn(self, policy: Policy, met: Sequence[tuple[Policy, float]], steps: int, rate: float) -> Policy:
        """s' = gain ln(exp(s / gain) + learnt / steps)."""
        learnt = 0.0
        for opponent, share in met:
            chance = self.win_rate(policy, opponent)
            learnt += share * 4.0 * chance * (1.0 - chance)
        learnt *= steps * rate / self._steps
        grown = policy[0] / self._gain + np.log1p(learnt * np.exp(-min(max(policy[0] / self._gain, -50.0), 50.0)))
        return np.array([self._gain * grown])


class DiscWorld:
    """Skill as above and a point in a disc: who stands a quarter turn ahead of another beats it, however skilled.

    Args:
      edge: log-odds of a quarter turn. turn: radians per million trained steps that a learner moves toward beating
        whom it meets.
    Source: Balduzzi et al. 2019, open-ended learning in symmetric zero-sum games (the disc game).
    """

    def __init__(self, *, edge: float = 2.0, turn: float = 0.3) -> None:
        self._edge = edge
        self._turn = turn
        self._skill = SkillWorld()

    def first(self, rng: np.random.Generator) -> Policy:
        """No skill, anywhere on the circle."""
        angle = rng.uniform(0.0, 2.0 * np.pi)
        return np.concatenate([self._skill.first(rng), [np.cos(angle), np.sin(angle)]])

    def win_rate(self, first: Policy, second: Policy) -> float:
        """Logistic in skill difference and cross product."""
        cross = first[1] * second[2] - first[2] * second[1]
        return _logistic(float(first[0] - second[0] + self._edge * cross))

    def learn(self, policy: Policy, met: Sequence[tuple[Policy, float]], steps: int, rate: float) -> Policy:
        """Skill as above; the point turns toward the mean of what would beat those met."""
        skill = self._skill.learn(policy, met, steps, rate)
        target = np.zeros(2)
        for opponent, share in met:
            target += share * np.array([opponent[2], -opponent[1]])
        length = float(np.hypot(*target))
        if length < 1e-9:
            return np.concatenate([skill, policy[1:]])
        step = 1.0 - np.exp(-self._turn * rate * steps / 1e6)
        point = policy[1:] + step * (target - policy[1:])
        return np.concatenate([skill, point / max(1.0, float(np.hypot(*point)))])


class MatrixWorld:
    """A mixed strategy over the actions of a cyclic game; learners move toward the best answer to whom they meet.

    Args:
      actions: A, odd. rate: of multiplicative updates per million trained steps.
    """

    def __init__(self, *, actions: int = 3, rate: float = 1.0) -> None:
        offsets = (np.arange(actions)[None, :] - np.arange(actions)[:, None]) % actions
        self._gains = np.where(offsets == 0, 0.0, np.where(offsets <= actions // 2, -1.0, 1.0))
        self._rate = rate

    def first(self, rng: np.random.Generator) -> Policy:
        """A mixture drawn evenly."""
        return rng.dirichlet(np.ones(len(self._gains)))

    def win_rate(self, first: Policy, second: Policy) -> float:
        """Expected result."""
        return float(np.clip(0.5 + 0.5 * (first @ self._gains @ second), 0.0, 1.0))

    def learn(self, policy: Policy, met: Sequence[tuple[Policy, float]], steps: int, rate: float) -> Policy:
        """Multiplicative weights against the mixture of those met, a little spread kept."""
        opponent = np.sum([share * other for other, share in met], axis=0)
        gains = self._gains @ opponent
        moved = (policy + 1e-3) * np.exp(self._rate * rate * steps / 1e6 * (gains - gains.max()))
        result: Policy = moved / moved.sum()
        return result


def drawn_placements(chances: Sequence[float], games: int, rng: np.random.Generator) -> dict[tuple[int, ...], int]:
    """Draws the placements of games without draws: place after place, in proportion to the weights.

    Args:
      chances: of the first side to finish before each other one; met exactly, as the weights are the odds.
    Returns:
      Ranks of all sides, 0 the best -> games.
    """
    likely = [min(max(chance, CERTAIN), 1.0 - CERTAIN) for chance in chances]
    weights = np.array([1.0, *((1.0 - chance) / chance for chance in likely)])
    sides = range(len(weights))
    found: dict[tuple[int, ...], int] = {(): games}
    for _ in sides[1:]:
        longer: dict[tuple[int, ...], int] = {}
        for ahead, times in found.items():
            left = [side for side in sides if side not in ahead]
            drawn = rng.multinomial(times, weights[left] / weights[left].sum())
            longer.update({(*ahead, side): n for side, n in zip(left, drawn.tolist(), strict=True) if n})
        found = longer
    orders = {(*ahead, *(side for side in sides if side not in ahead)): times for ahead, times in found.items()}
    return {tuple(map(order.index, sides)): times for order, times in orders.items()}


def _logistic(log_odds: float) -> float:
    """1 / (1 + exp(-log_odds)), by odds that a float holds."""
    return 1.0 / (1.0 + math.exp(min(max(-log_odds, -50.0), 50.0)))


WORLDS: Mapping[str, World] = {"skill": SkillWorld(), "disc": DiscWorld(), "matrix": MatrixWorld()}
"""Name -> world."""
