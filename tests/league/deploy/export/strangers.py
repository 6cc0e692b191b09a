"""Games as their users write them, of every kind of seats, observations and actions; a test copies this file."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import AgentSelector

TURNS = 4


class Together(ParallelEnv):
    """Seats that act at once and are shown random members of their spaces, with a mask where the action is a number."""

    metadata = {"name": "together_v0"}  # noqa: RUF012

    def __init__(self, seen: dict[str, Any], acts: dict[str, Any], *, masks_in: str = "") -> None:
        self.possible_agents = list(seen)
        self.agents: list[str] = []
        self._seen, self._acts, self._masks_in = seen, acts, masks_in

    def observation_space(self, agent: str) -> Any:
        shown = self._seen[agent]
        if self._masks_in != "observation":
            return shown
        mask = spaces.Box(0, 1, (self._acts[agent].n,), np.int8)
        return spaces.Dict({"observation": shown, "action_mask": mask})

    def action_space(self, agent: str) -> Any:
        return self._acts[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        for number, space in enumerate((*self._seen.values(), *self._acts.values())):
            space.seed(None if seed is None else seed % 2**31 + number)
        self._turn = 0
        return self._show()

    def step(self, actions: dict[str, Any]) -> Any:
        assert set(actions) == set(self.agents)
        for agent, action in actions.items():
            assert self._acts[agent].contains(action), f"{action!r} is not in {self._acts[agent]}"
            assert not self._masks_in or action != self._acts[agent].start + self._turn % 2, "the mask forbids that"
        self._turn += 1
        over = self._turn == TURNS
        shown, infos = self._show()
        rewards = {agent: float(over) * (1 - 2 * (place % 2)) for place, agent in enumerate(self.agents)}
        ended = (shown, rewards, dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, False), infos)
        self.agents = [] if over else self.agents
        return ended

    def _show(self) -> Any:
        shown: dict[str, Any] = {agent: self._seen[agent].sample() for agent in self.agents}
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        for agent in self.agents if self._masks_in else ():
            mask = np.ones(self._acts[agent].n, np.int8)
            mask[self._turn % 2] = 0
            if self._masks_in == "infos":
                infos[agent] = {"action_mask": mask}
            else:
                shown[agent] = {"observation": shown[agent], "action_mask": mask}
        return shown, infos


class InTurn(AECEnv):
    """Seats that act one after another, each with spaces of its own."""

    metadata = {"name": "in_turn_v0", "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, seen: dict[str, Any], acts: dict[str, Any]) -> None:
        super().__init__()
        self.possible_agents = list(seen)
        self._seen, self._acts = seen, acts

    def observation_space(self, agent: str) -> Any:
        return self._seen[agent]

    def action_space(self, agent: str) -> Any:
        return self._acts[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        for number, space in enumerate(self._seen.values()):
            space.seed(None if seed is None else seed % 2**31 + number)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self._turn = 0
        self._order = AgentSelector(self.agents)
        self.agent_selection = self._order.next()
        self._deal()

    def _deal(self) -> None:
        self._shown = {agent: self._seen[agent].sample() for agent in self.possible_agents}

    def observe(self, agent: str) -> Any:
        return self._shown[agent]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        assert self._acts[agent].contains(action), f"{action!r} is not in {self._acts[agent]}"
        self._turn += 1
        if self._turn == TURNS * len(self.possible_agents):
            self.terminations = dict.fromkeys(self.agents, True)
            self.rewards = {seat: float(place == 0) for place, seat in enumerate(self.agents)}
            self._accumulate_rewards()
        self.agent_selection = self._order.next()
        self._deal()


class Alone(gymnasium.Env):  # type: ignore[misc]
    """One seat."""

    def __init__(self, seen: Any, acts: Any) -> None:
        self.observation_space, self.action_space = seen, acts

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.observation_space.seed(seed)
        self._turn = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self._turn += 1
        return self.observation_space.sample(), 1.0, self._turn == TURNS, False, {}


def _row(size: int) -> Any:
    return spaces.Box(0.0, 1.0, (size,), np.float32)


def duel() -> Any:
    """Equal spaces, which may be split into groups; masks in the observations."""
    return Together(
        {name: _row(6) for name in ("red", "blue")},
        {name: spaces.Discrete(5) for name in ("red", "blue")},
        masks_in="observation",
    )


def masks_in_infos() -> Any:
    """Actions that do not begin at 0, and masks beside the observation."""
    seats = ("red", "blue")
    return Together(
        {name: spaces.Discrete(7, start=2) for name in seats},
        {name: spaces.Discrete(4) for name in seats},
        masks_in="infos",
    )


def market() -> Any:
    """Three kinds of seats."""
    return InTurn(
        {"seller": _row(4), "expert": _row(6), "novice": _row(3)},
        {"seller": spaces.Discrete(5, start=1), "expert": spaces.Discrete(2), "novice": spaces.Discrete(2)},
    )


def composite() -> Any:
    """Observations and actions of several parts, which differ between two kinds of seats."""
    scout = spaces.Dict({"move": spaces.Discrete(3, start=-1), "aim": spaces.MultiDiscrete([2, 3])})
    smith = spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2)))
    seen = spaces.Dict({"place": spaces.MultiDiscrete([3, 4]), "own": spaces.Dict({"speed": _row(2)})})
    return Together(
        {"scout": seen, "smith": spaces.Tuple((spaces.Discrete(3), _row(2)))}, {"scout": scout, "smith": smith}
    )


def pictures() -> Any:
    """Images, and sub-actions."""
    seats = ("left", "right")
    return Together(
        {name: spaces.Box(0, 255, (12, 12, 3), np.uint8) for name in seats},
        {name: spaces.MultiDiscrete([2, 4]) for name in seats},
    )


def boxes() -> Any:
    """Numbers within uneven bounds, by name."""
    arm = spaces.Box(np.array([-3.0, 0.0]), np.array([1.0, 20.0]), dtype=np.float64)
    return Alone(_row(3), spaces.Dict({"arm": arm, "grip": spaces.Box(0.0, 0.5, (1,), np.float32)}))


def frozen() -> Any:
    """Numbers for both."""
    return Alone(spaces.Discrete(16), spaces.Discrete(4, start=3))
