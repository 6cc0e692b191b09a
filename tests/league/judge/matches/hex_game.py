"""A board game as a stranger writes it, as an AEC env: two sides connect their edges of a rhombus of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

NEAR = ((0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1))


class Hex(AECEnv):
    """Red connects top and bottom, blue left and right. Each seat sees its stones, the other's, and which edges it has.

    Args:
      hidden: show a seat its own stones alone.
    """

    metadata = {"name": "hex_v0", "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, size: int = 4, *, hidden: bool = False) -> None:
        super().__init__()
        self.size, self.hidden = size, hidden
        self.possible_agents = ["red", "blue"]

    def observation_space(self, agent: str) -> Any:
        cells = self.size * self.size
        return spaces.Dict(
            {
                "observation": spaces.Box(0, 1, (3, self.size, self.size), np.int8),
                "action_mask": spaces.Box(0, 1, (cells,), np.int8),
            }
        )

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(self.size * self.size)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.board = np.full((self.size, self.size), -1)
        self.agent_selection = "red"

    def observe(self, agent: str) -> Any:
        own = self.possible_agents.index(agent)
        shown = np.zeros((3, self.size, self.size), np.int8)
        shown[0] = self.board == own
        shown[1] = (self.board == 1 - own) & (not self.hidden)
        shown[2] = own
        return {"observation": shown, "action_mask": (self.board.ravel() < 0).astype(np.int8)}

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        own = self.possible_agents.index(agent)
        row, column = divmod(int(action), self.size)
        self.board[row, column] = own
        if self._connects(own, row, column):
            self.rewards = {seat: 1.0 if seat == agent else -1.0 for seat in self.agents}
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.possible_agents[1 - own]
        self._accumulate_rewards()

    def _connects(self, own: int, row: int, column: int) -> bool:
        """True if the stone that was placed completes a chain between both edges of its side."""
        seen, left, edges = {(row, column)}, [(row, column)], set()
        while left:
            at = left.pop()
            edges |= {at[own]} & {0, self.size - 1}
            for down, right in NEAR:
                place = at[0] + down, at[1] + right
                inside = min(place) >= 0 and max(place) < self.size
                if inside and place not in seen and self.board[place] == own:
                    seen.add(place)
                    left.append(place)
        return edges == {0, self.size - 1}


def make(size: int = 4) -> Hex:
    return Hex(size)


def make_hidden() -> Hex:
    return Hex(3, hidden=True)
