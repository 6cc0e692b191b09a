"""A simultaneous game of teams in which numbers are added up."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv


class Sums(ParallelEnv):  # type: ignore[misc]
    """Every seat names 0, 1 or 2, once; it is paid its team's sum less the other's."""

    metadata = {"name": "sums"}  # noqa: RUF012

    def __init__(self, teams: list[int]) -> None:
        self.teams = teams
        self.possible_agents = [f"seat_{number}" for number in range(len(teams))]

    def observation_space(self, agent: str) -> Any:
        """One number."""
        return gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)

    def action_space(self, agent: str) -> Any:
        """0, 1 or 2."""
        return gymnasium.spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """A new game."""
        self.agents = list(self.possible_agents)
        return {seat: np.zeros(1, np.float32) for seat in self.agents}, {seat: {} for seat in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        """The only turn."""
        sums = [0, 0]
        for team, action in zip(self.teams, actions.values(), strict=True):
            sums[team] += int(action)
        seats = list(self.possible_agents)
        rewards = {seat: float(sums[team] - sums[1 - team]) for seat, team in zip(seats, self.teams, strict=True)}
        over, running = dict.fromkeys(seats, True), dict.fromkeys(seats, False)
        self.agents = []
        return {seat: np.ones(1, np.float32) for seat in seats}, rewards, over, running, {seat: {} for seat in seats}


def make(teams: list[int]) -> Sums:
    """The game."""
    return Sums(teams)
