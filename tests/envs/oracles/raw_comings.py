"""Games whose seats pause, leave and come back as a script says, in turns and all at once.

A script has a line for each step: seat -> "in" (it acts next), "out" (it pauses), "dead" or "cut". Every seat that was
in earns 1 a step; it observes 100 * (its number + 1) + the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

SEATS = ("a", "b")
Script = Sequence[Mapping[str, str]]


class _Seen:
    possible_agents: ClassVar[list[str]] = list(SEATS)
    metadata: ClassVar[dict[str, Any]] = {"name": "comings"}
    steps = 0

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, 1_000, (1,), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def seen(self, agent: str) -> np.ndarray:
        return np.full(1, 100 * (SEATS.index(agent) + 1) + self.steps, np.float32)


class RawParallel(_Seen, ParallelEnv):
    """All that are in act at once. stays: flagged agents stay in `agents`, as those of some games do."""

    def __init__(self, script: Script, *, stays: bool = False) -> None:
        self.script, self.stays = script, stays

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.steps, self.agents = 0, list(SEATS)
        return {agent: self.seen(agent) for agent in SEATS}, {agent: {} for agent in SEATS}

    def step(self, actions: dict[str, Any]) -> Any:
        self.steps += 1
        line = self.script[self.steps - 1]
        flags = {kind: {agent: line[agent] == kind for agent in SEATS} for kind in ("dead", "cut")}
        self.agents = [
            agent for agent in SEATS if line[agent] == "in" or (self.stays and line[agent] in ("dead", "cut"))
        ]
        if all(how in ("dead", "cut") for how in line.values()):
            self.agents = []
        rewards = {agent: 1.0 if agent in actions else 0.0 for agent in SEATS}
        return {agent: self.seen(agent) for agent in SEATS}, rewards, flags["dead"], flags["cut"], {}


class RawAec(_Seen, AECEnv):
    """The same in turns: a step is a turn of every seat that is in; one that comes back is in `agents` again."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.steps, self.agents = 0, list(SEATS)
        self.rewards = self._cumulative_rewards = dict.fromkeys(SEATS, 0.0)
        self.terminations, self.truncations = dict.fromkeys(SEATS, False), dict.fromkeys(SEATS, False)
        self.infos: dict[str, Any] = {agent: {} for agent in SEATS}
        self.waiting, self.agent_selection = ["b"], "a"

    def observe(self, agent: str) -> np.ndarray:
        return self.seen(agent)

    def step(self, action: Any) -> None:
        mover = self.agent_selection
        if self.terminations.get(mover) or self.truncations.get(mover):
            assert action is None
            self.agents.remove(mover)
            del self.terminations[mover], self.truncations[mover]
            self.rewards = dict.fromkeys(self.agents, 0.0)
        else:
            self.rewards = {agent: float(agent == mover) for agent in self.agents}
            if not self.waiting:
                self._next_line()
        if self.waiting:
            self.agent_selection = self.waiting.pop(0)

    def _next_line(self) -> None:
        self.steps += 1
        line = self.script[self.steps - 1]
        for agent in SEATS:
            if line[agent] == "in" and agent not in self.agents:
                self.agents.append(agent)
                self.rewards.setdefault(agent, 0.0)
            if agent in self.agents:
                self.terminations[agent], self.truncations[agent] = line[agent] == "dead", line[agent] == "cut"
            self.infos[agent] = {}
        dead = [agent for agent in SEATS if agent in self.agents and line[agent] in ("dead", "cut")]
        self.waiting = [*dead, *(agent for agent in SEATS if line[agent] == "in")]


def script(a: str, b: str) -> Script:
    """A line for each step, of two words for each seat: i(n), o(ut), d(ead), c(ut)."""
    words = {"i": "in", "o": "out", "d": "dead", "c": "cut"}
    return [{"a": words[one], "b": words[two]} for one, two in zip(a, b, strict=True)]


def cut_and_back() -> RawParallel:
    return RawParallel(script("iiiid", "icoid"))
