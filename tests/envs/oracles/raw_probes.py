"""The games of `tests.envs.counting_games` as plain PettingZoo and Gymnasium envs that adapters must reproduce.

Written with dicts and counters in the style of each API, so that only the rules of the probes are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from tests.envs.counting_games import NUM_ACTIONS, is_legal, lengths_of, reward_of

FIELDS = {"counter": spaces.Box(-1, 1e6, (3,), np.float32), "echo": spaces.Box(-1, 10, (1,), np.float32)}
MASK = {"action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)}


class Counting:
    """What one raw probe counts. `episode` starts at -1 and is set back by the test before it plays."""

    def __init__(self, *, index: int, num_seats: int, episode_length: int | Sequence[int]) -> None:
        self.index, self.lengths = index, lengths_of(episode_length)
        self.episode, self.steps, self.echo = -1, 0, [-1] * num_seats

    def begin(self) -> None:
        self.episode, self.steps, self.echo = self.episode + 1, 0, [-1] * len(self.echo)

    def over(self) -> bool:
        return self.steps == self.lengths[(self.episode + self.index) % len(self.lengths)]

    def see(self, seat: int) -> dict[str, Any]:
        counter = np.array([self.episode, self.steps, seat], np.float32)
        return {"counter": counter, "echo": np.array([self.echo[seat]], np.float32)}

    def mask(self, seat: int) -> np.ndarray:
        legal = [is_legal(a, episode=self.episode, step=self.steps, seat=seat) for a in range(NUM_ACTIONS)]
        return np.array(legal, np.int8)


class RawTurnProbe(AECEnv):
    """Seats in turn. mask_in: "", "observation" or "infos". last_move: only the end pays."""

    metadata: ClassVar[dict[str, Any]] = {"name": "raw_turn_probe"}

    def __init__(
        self,
        *,
        index: int = 0,
        num_seats: int = 2,
        episode_length: int | Sequence[int] = 5,
        truncate: bool = False,
        mask_in: str = "",
        last_move: bool = False,
    ) -> None:
        self.possible_agents = [f"seat_{seat}" for seat in range(num_seats)]
        self.count = Counting(index=index, num_seats=num_seats, episode_length=episode_length)
        self.truncate, self.mask_in, self.last_move = truncate, mask_in, last_move

    def observation_space(self, agent: str) -> spaces.Dict:
        return spaces.Dict({**FIELDS, **(MASK if self.mask_in == "observation" else {})})

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(NUM_ACTIONS)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.count.begin()
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.agent_selection = self.agents[0]
        self._tell()

    def observe(self, agent: str) -> dict[str, Any]:
        seat = self.possible_agents.index(agent)
        extra = {"action_mask": self.count.mask(seat)} if self.mask_in == "observation" else {}
        return {**self.count.see(seat), **extra}

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        mover = self.possible_agents.index(self.agent_selection)
        self._cumulative_rewards[self.agent_selection] = 0
        self.count.echo[mover] = action
        step = self.count.steps
        self.count.steps += 1
        over = self.count.over()
        for seat, agent in enumerate(self.possible_agents):
            pays = (1 if seat == mover else -1) if over else 0
            self.rewards[agent] = pays if self.last_move else reward_of(step, seat)
        if over:
            (self.truncations if self.truncate else self.terminations).update(dict.fromkeys(self.agents, True))
        self.agent_selection = self.possible_agents[(mover + 1) % len(self.possible_agents)]
        self._accumulate_rewards()
        self._tell()

    def _tell(self) -> None:
        self.infos = {agent: {} for agent in self.agents}
        if self.mask_in == "infos":
            seat = self.possible_agents.index(self.agent_selection)
            self.infos[self.agent_selection] = {"action_mask": self.count.mask(seat)}


class RawSimultaneousProbe(ParallelEnv):
    """All seats at once."""

    metadata: ClassVar[dict[str, Any]] = {"name": "raw_simultaneous_probe"}

    def __init__(
        self,
        *,
        index: int = 0,
        num_seats: int = 2,
        episode_length: int | Sequence[int] = 5,
        truncate: bool = False,
    ) -> None:
        self.possible_agents = [f"seat_{seat}" for seat in range(num_seats)]
        self.count = Counting(index=index, num_seats=num_seats, episode_length=episode_length)
        self.truncate = truncate

    def observation_space(self, agent: str) -> spaces.Dict:
        return spaces.Dict(FIELDS)

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(NUM_ACTIONS)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        self.count.begin()
        self.agents = list(self.possible_agents)
        return self._see(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        assert list(actions) == self.agents
        for seat, agent in enumerate(self.possible_agents):
            self.count.echo[seat] = actions[agent]
        rewards = {agent: reward_of(self.count.steps, seat) for seat, agent in enumerate(self.possible_agents)}
        self.count.steps += 1
        over = self.count.over()
        self.agents = [] if over else self.agents
        ended = dict.fromkeys(self.possible_agents, over)
        going = dict.fromkeys(self.possible_agents, False)
        flags = (going, ended) if self.truncate else (ended, going)
        return self._see(), rewards, *flags, {agent: {} for agent in self.possible_agents}

    def _see(self) -> dict[str, Any]:
        return {agent: self.count.see(seat) for seat, agent in enumerate(self.possible_agents)}


class RawSingleProbe(gymnasium.Env):
    """One seat."""

    observation_space = spaces.Dict(FIELDS)
    action_space = spaces.Discrete(NUM_ACTIONS)

    def __init__(self, index: int = 0, episode_length: int | Sequence[int] = 5, truncate: bool = False) -> None:
        self.count = Counting(index=index, num_seats=1, episode_length=episode_length)
        self.truncate = truncate

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        self.count.begin()
        return self.count.see(0), {}

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        self.count.echo[0] = action
        reward = reward_of(self.count.steps, 0)
        self.count.steps += 1
        over = self.count.over()
        return self.count.see(0), reward, over and not self.truncate, over and self.truncate, {}
