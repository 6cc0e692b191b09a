"""A parallel game of PettingZoo whose seats differ in spaces, come late, and leave early, with all of it told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class RawRoles(ParallelEnv):
    """Every seat observes 100 * (its number + 1) + the step in all of its numbers.

    Args:
      sizes: [S] numbers in each seat's observation. actions: [S] action spaces.
      lives: name of a seat -> (step at which it appears, step after which it is gone); 0 and the end for the others.
      length: of an episode. cut: whether the end truncates instead of terminating.
      blow: (seat, step, reward) given to a seat whether it is there or not.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "roles"}

    def __init__(
        self,
        sizes: Mapping[str, int],
        actions: Mapping[str, spaces.Space],
        *,
        lives: Mapping[str, tuple[int, int]] | None = None,
        length: int = 6,
        cut: bool = False,
        blows: Sequence[tuple[str, int, float]] = (),
    ) -> None:
        self.possible_agents = list(sizes)
        self.sizes, self.spaces, self.length, self.cut, self.blows = (
            dict(sizes),
            dict(actions),
            length,
            cut,
            list(blows),
        )
        self.lives = {**dict.fromkeys(sizes, (0, length)), **(lives or {})}
        self.decisions: list[str] = []

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, 10_000, (self.sizes[agent],), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return self.spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        self.agents = [agent for agent, (start, _) in self.lives.items() if start == 0]
        return self.seen(self.agents), {agent: {} for agent in self.agents}

    def seen(self, agents: Sequence[str]) -> dict[str, np.ndarray]:
        number = {agent: index for index, agent in enumerate(self.possible_agents)}
        return {
            agent: np.full(self.sizes[agent], 100 * (number[agent] + 1) + self.steps, np.float32) for agent in agents
        }

    def step(self, actions: dict[str, Any]) -> Any:
        assert set(actions) == set(self.agents), "an action for a seat that is not there, or none for one that is"
        assert all(self.spaces[agent].contains(action) for agent, action in actions.items()), actions
        self.decisions += list(actions)
        self.steps += 1
        over = self.steps == self.length
        gone = [agent for agent in self.agents if self.lives[agent][1] == self.steps and not over]
        flags = dict.fromkeys(self.agents, over)
        terminations = {**dict.fromkeys(self.agents, over and not self.cut), **dict.fromkeys(gone, True)}
        truncations = {**(flags if self.cut else dict.fromkeys(self.agents, False)), **dict.fromkeys(gone, False)}
        rewards = dict.fromkeys(self.agents, 1.0)
        rewards.update({agent: reward for agent, step, reward in self.blows if step == self.steps})
        observations = self.seen(self.agents)
        self.agents = [] if over else [agent for agent in self.agents if agent not in gone]
        late = [agent for agent, (start, _) in self.lives.items() if start == self.steps and not over]
        self.agents += late
        observations.update(self.seen(late))
        return observations, rewards, terminations, truncations, {agent: {} for agent in observations}
