"""Hungry Geese of kaggle-environments as a game of PettingZoo: four snakes on a torus that move at the same time.

A goose that dies leaves. Rewards are places by the package's own score: who lives longest, then who is longest. Needs
`pip install --no-deps kaggle-environments`.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from kaggle_environments.envs.hungry_geese import hungry_geese as rules
from kaggle_environments.utils import structify
from pettingzoo import ParallelEnv

ROWS, COLUMNS, SEATS, LAST_TURN = 7, 11, 4, 199
SETTINGS = {"rows": ROWS, "columns": COLUMNS, "hunger_rate": 40, "min_food": 2, "max_length": 99}
MOVES = [move.name for move in rules.Action]
NAMES = [f"goose_{seat}" for seat in range(SEATS)]
PLANES = 4 * SEATS + 1
Views = dict[str, Any]


class Geese(ParallelEnv):  # type: ignore[misc]
    """The observation is seen from the own head, which is always in the middle."""

    metadata: ClassVar = {"name": "hungry_geese", "render_modes": []}

    def __init__(self) -> None:
        self.possible_agents = list(NAMES)
        self._random = random.Random()

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        board = spaces.Box(0.0, 1.0, (PLANES, ROWS, COLUMNS), np.float32)
        return spaces.Dict({"observation": board, "action_mask": spaces.MultiBinary(len(MOVES))})

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(len(MOVES))

    def reset(self, seed: int | None = None, options: object = None) -> tuple[Views, Views]:
        self._random, self.agents, self._turn = random.Random(seed), list(NAMES), 0
        self._moves: list[str | None] = [None] * SEATS
        self._tails: list[int | None] = [None] * SEATS
        seats = [{"observation": {"index": seat}, "status": "ACTIVE", "reward": 0} for seat in range(SEATS)]
        self._seats = structify(seats)
        self._play(done=True)
        return self._views(NAMES), {name: {} for name in NAMES}

    def step(self, actions: dict[str, int]) -> tuple[Views, ...]:
        playing, before = self.agents, self._moves
        self._tails = [goose[-1] if goose else None for goose in self.geese]
        self._moves = [MOVES[int(actions[name])] if name in playing else None for name in NAMES]
        for seat, move in zip(self._seats, self._moves, strict=True):
            seat.action = move
        self._turn += 1
        self._play(done=False, before=before)
        late = self._turn >= LAST_TURN
        ended = {name: late or self._seats[NAMES.index(name)].status != "ACTIVE" for name in playing}
        rewards = {name: self._place(NAMES.index(name)) if ended[name] else 0.0 for name in playing}
        self.agents = [name for name in playing if not ended[name]]
        return self._views(playing), rewards, ended, dict.fromkeys(playing, False), {name: {} for name in playing}

    @property
    def geese(self) -> list[list[int]]:
        """The cells of every goose, its head first."""
        return list(self._seats[0].observation.geese)

    def state_of(self, name: str) -> dict[str, Any]:
        """The observation that the package's own agents take."""
        return {**self._seats[0].observation, "index": NAMES.index(name)}

    def last_move(self, name: str) -> str | None:
        """The move before; None at the start."""
        return self._moves[NAMES.index(name)]

    def _play(self, *, done: bool, before: list[str | None] | None = None) -> None:
        """One turn by the package's rules; its engine checks a schema in every one, which takes most of the time."""
        last = [{"action": move} if move else {} for move in before or []]
        steps = [None] * (self._turn - 1) + [last] if self._turn else []
        rules.sample = self._random.sample
        game = SimpleNamespace(configuration=SETTINGS, done=done, steps=steps, debug_print=lambda text: None)
        rules.interpreter(self._seats, game)

    def _place(self, seat: int) -> float:
        """In [-1, 1]; equal ones share their places."""
        points = [place.reward for place in self._seats]
        below = sum(other < points[seat] for other in points) + 0.5 * (points.count(points[seat]) - 1)
        return float(2.0 * below / (SEATS - 1) - 1.0)

    def _views(self, names: list[str]) -> Views:
        return {name: self._view(NAMES.index(name)) for name in names}

    def _view(self, seat: int) -> dict[str, Any]:
        geese = self.geese
        board = np.zeros((PLANES, ROWS * COLUMNS), np.float32)
        for turn in range(SEATS):
            goose, tail = geese[(seat + turn) % SEATS], self._tails[(seat + turn) % SEATS]
            if goose:
                board[4 * turn, goose[0]] = board[4 * turn + 1, goose[-1]] = 1.0
                board[4 * turn + 2, goose] = 1.0
            if tail is not None:
                board[4 * turn + 3, tail] = 1.0
        board[-1, list(self._seats[0].observation.food)] = 1.0
        planes, mask = board.reshape(PLANES, ROWS, COLUMNS), np.ones(len(MOVES), np.int8)
        if geese[seat]:
            row, column = divmod(geese[seat][0], COLUMNS)
            planes = np.roll(planes, (ROWS // 2 - row, COLUMNS // 2 - column), (1, 2))
        move = self._moves[seat]
        if move is not None:
            mask[(MOVES.index(move) + 2) % 4] = 0
        return {"observation": planes, "action_mask": mask}

    def close(self) -> None:
        """Nothing is held."""


def greedy(game: Geese, name: str) -> int:
    """The move of the package's own greedy agent, which forgets its games."""
    agent = rules.GreedyAgent(rules.Configuration(SETTINGS))
    agent.last_action = rules.Action[move] if (move := game.last_move(name)) else None
    return MOVES.index(agent(rules.Observation(game.state_of(name))))


def make() -> Geese:
    """The game as League loads it."""
    return Geese()


BOTS = {"greedy": greedy}
