"""Auctions whose trees are visited, also in child processes: this module imports no more than a user's game does."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar, NoReturn

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv


class Auction(ParallelEnv):  # type: ignore[type-arg]
    """Two sealed bids for a thing whose worth to each is drawn; the higher one pays its bid. A coin decides draws."""

    metadata: ClassVar[dict[str, Any]] = {"name": "auction"}
    worths = 2

    def __init__(self) -> None:
        self.possible_agents = ["a", "b"]
        self.rng = np.random.default_rng()

    def observation_space(self, agent: str) -> Box:
        return Box(0, 3, (1,), np.float32)

    def action_space(self, agent: str) -> Discrete:  # type: ignore[type-arg]
        return Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents = self.possible_agents[:]
        self.worth = self.rng.integers(self.worths, size=2)
        seen = {agent: np.array([worth], np.float32) for agent, worth in zip(self.agents, self.worth, strict=True)}
        return seen, {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        bids = [actions["a"], actions["b"]]
        winner = int(self.rng.integers(2)) if bids[0] == bids[1] else int(np.argmax(bids))
        earned = [0.0, 0.0]
        earned[winner] = 2.0 * self.worth[winner] + 1.0 - bids[winner]
        seats, self.agents = self.agents, []
        seen = {seat: np.zeros(1, np.float32) for seat in seats}
        ended, no = dict.fromkeys(seats, True), dict.fromkeys(seats, False)
        return seen, dict(zip(seats, earned, strict=True)), ended, no, {seat: {} for seat in seats}


class Lottery(Auction):
    """Of so many worths that the same two hardly ever come again."""

    worths = 1000


class Dying(Auction):
    """Ends its process when it is copied."""

    def __deepcopy__(self, memo: Any) -> NoReturn:
        os._exit(3)


class Hanging(Auction):
    """Never comes back when it is copied."""

    def __deepcopy__(self, memo: Any) -> NoReturn:
        time.sleep(3600.0)
        raise AssertionError


made: list[Auction] = []
"""The auctions of this process."""


def auction() -> Auction:
    made.append(Auction())
    return made[-1]


def lottery() -> Lottery:
    return Lottery()


def dying() -> Dying:
    return Dying()


def hanging() -> Hanging:
    return Hanging()
