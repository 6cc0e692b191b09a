"""Skill of policies in games of teams and of more than two sides: a mean and an uncertainty, moved by every result.

Bradley-Terry ratings (`league.core.ratings`) are fitted to pairs of policies that hold whole sides. Where the members
of a team are different policies, or games come in one by one, the skills here are moved instead.
Shape letters: K sides of a game, M members of a side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MEAN, DEVIATION = 25.0, 25.0 / 3.0
BETA = DEVIATION / 2.0
"""Skill difference at which the better side wins about three games in four. Source: Weng and Lin 2011, section 6."""
KAPPA = 1e-4
"""Least share of its variance that a skill keeps in one game."""


@dataclass(frozen=True)
class Skill:
    """One policy's skill. mean, deviation: of a normal belief; games: results behind it."""

    mean: float = MEAN
    deviation: float = DEVIATION
    games: int = 0

    @property
    def sure(self) -> float:
        """What the skill is very probably not below: three deviations under the mean."""
        return self.mean - 3.0 * self.deviation


@dataclass
class SkillTable:
    """Skills of all policies by id. fixed: ids whose skill results do not move, such as reference bots."""

    skills: dict[str, Skill] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()

    def book(self, sides: Sequence[Sequence[str]], ranks: Sequence[int]) -> None:
        """Book one game.

        Args:
          sides: [K][M] ids of the policies on each side.
          ranks: [K], 0 for the first place; equal ranks are a draw.
        Raises:
          ValueError: fewer than two sides, an empty side, or ranks that do not fit.
        """
        current = [[self.skills.get(policy, Skill()) for policy in side] for side in sides]
        for side, skills in zip(sides, moved(current, ranks), strict=True):
            for policy, skill in zip(side, skills, strict=True):
                if policy not in self.fixed:
                    self.skills[policy] = skill

    def ranking(self) -> list[tuple[str, Skill]]:
        """Policies by what their skill is surely not below, best first."""
        return sorted(self.skills.items(), key=lambda row: (-row[1].sure, row[0]))


def moved(sides: Sequence[Sequence[Skill]], ranks: Sequence[int]) -> list[list[Skill]]:
    """Skills after one game.

    Raises:
      ValueError: fewer than two sides, an empty side, or ranks that do not fit.
    Source: Weng and Lin 2011, Bayesian approximation for online ranking, algorithm 1 (Bradley-Terry, full pairs).
    """
    if len(sides) < 2 or len(ranks) != len(sides) or not all(sides):
        raise ValueError(f"a game needs at least two sides with members and a rank each, not {len(sides)}, {ranks}")
    means = [sum(skill.mean for skill in side) for side in sides]
    variances = [sum(skill.deviation**2 for skill in side) for side in sides]
    result = []
    for i, side in enumerate(sides):
        shift = shrink = 0.0
        for q in range(len(sides)):
            if q == i:
                continue
            width = math.sqrt(variances[i] + variances[q] + 2.0 * BETA**2)
            wins = win_chance(means[i] - means[q], width)
            score = 1.0 if ranks[i] < ranks[q] else 0.5 if ranks[i] == ranks[q] else 0.0
            gamma = math.sqrt(variances[i]) / width
            shift += variances[i] / width * (score - wins)
            shrink += gamma * variances[i] / width**2 * wins * (1.0 - wins)
        result.append([_moved(skill, variances[i], shift, shrink) for skill in side])
    return result


def forecast(sides: Sequence[Sequence[Skill]]) -> list[float]:
    """[K], each side's mean chance of beating another one."""
    means = [sum(skill.mean for skill in side) for side in sides]
    variances = [sum(skill.deviation**2 for skill in side) for side in sides]
    places = range(len(sides))
    return [
        sum(
            win_chance(means[i] - means[q], math.sqrt(variances[i] + variances[q] + 2.0 * BETA**2))
            for q in places
            if q != i
        )
        / (len(sides) - 1)
        for i in places
    ]


def win_chance(difference: float, width: float) -> float:
    """Logistic chance of winning with skills that differ by so much."""
    return 0.5 * (1.0 + math.tanh(difference / (2.0 * width)))


def skills_of(games: Sequence[tuple[Sequence[Sequence[str]], Sequence[int]]], known: Mapping[str, Skill]) -> SkillTable:
    """Skills after games in the order in which they were played; the known ones stay fixed."""
    table = SkillTable(dict(known), frozenset(known))
    for sides, ranks in games:
        table.book(sides, ranks)
    return table


def _moved(skill: Skill, variance: float, shift: float, shrink: float) -> Skill:
    part = skill.deviation**2 / variance
    kept = max(1.0 - part * shrink, KAPPA)
    return Skill(skill.mean + part * shift, skill.deviation * math.sqrt(kept), skill.games + 1)
