"""Whether the past counts: mazes that must be remembered, speeds that are not seen, chance, and plain games."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv

from league.envs.facts.game_facts import GameFacts
from league.envs.facts.history import Comparisons
from league.envs.facts.past_regression import tells_more
from league.envs.facts.random_play import RandomPlay
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig

HERE = __name__


class Corridor(gymnasium.Env[np.ndarray, int]):
    """Three steps to a fork; the first observation says which way to turn. Seen: the cue at the start, and the fork.

    Args:
      chance: of a reward that is drawn instead. shown: whether the cue is seen all the way.
    """

    observation_space = gymnasium.spaces.Box(-1.0, 3.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, chance: float = 0.0, *, shown: bool = False) -> None:
        self._chance, self._shown = chance, shown

    def _observation(self) -> np.ndarray:
        return np.array([self._cue if self._shown or self._at == 0 else 0.0, self._at], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, object]]:
        super().reset(seed=seed)
        self._cue, self._at = int(self.np_random.choice([-1, 1])), 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        self._at += 1
        if self._at < 3:
            return self._observation(), 0.0, False, False, {}
        right = (action == 1) == (self._cue == 1)
        if self.np_random.random() < self._chance:
            right = bool(self.np_random.random() < 0.5)
        return self._observation(), 1.0 if right else -1.0, True, False, {}


def remembered() -> Corridor:
    return Corridor()


def blurred() -> Corridor:
    return Corridor(chance=0.3)


def shown() -> Corridor:
    return Corridor(chance=0.3, shown=True)


def drawn() -> Corridor:
    return Corridor(chance=1.0)


class Seen(gymnasium.ObservationWrapper[np.ndarray, Any, np.ndarray]):
    """A registered game of which only some numbers are seen, with noise."""

    def __init__(self, name: str, numbers: list[int], *, noise: float = 0.0) -> None:
        super().__init__(gymnasium.make(name))
        self._numbers, self._noise = numbers, noise
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(numbers),), np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        drawn = self.np_random.normal(size=len(self._numbers))
        return np.asarray(observation[self._numbers] + self._noise * drawn, np.float32)


def cart_without_speeds() -> Seen:
    return Seen("CartPole-v1", [0, 2])


def pendulum_without_speed() -> Seen:
    return Seen("Pendulum-v1", [0, 1])


def car_without_speed() -> Seen:
    return Seen("MountainCar-v0", [0])


class FilmedCorridor(Corridor):
    """The same, every number with noise of its own, so that no observation comes twice."""

    def _observation(self) -> np.ndarray:
        seen: np.ndarray = super()._observation() + 0.1 * self.np_random.random(2)
        return seen.astype(np.float32)


def filmed() -> Corridor:
    return FilmedCorridor()


def filmed_and_shown() -> Corridor:
    return FilmedCorridor(shown=True)


def filmed_and_drawn() -> Corridor:
    return FilmedCorridor(chance=1.0)


class Served(ParallelEnv[str, np.ndarray, int]):
    """A ball flies from side to side and is served again where it is missed; its speed is not seen."""

    possible_agents = ["left", "right"]  # noqa: RUF012
    metadata: dict[str, Any] = {"name": "served"}  # noqa: RUF012

    def observation_space(self, agent: str) -> Any:
        return gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)

    def action_space(self, agent: str) -> Any:
        return gymnasium.spaces.Discrete(3)

    def _serve(self) -> None:
        self._ball = np.array([0.0, self._rng.uniform(-1, 1)])
        self._speed = np.array([self._rng.choice([-0.2, 0.2]), self._rng.choice([-0.2, -0.1, 0.1, 0.2])])

    def _seen(self) -> dict[str, np.ndarray]:
        return {agent: self._ball.astype(np.float32) for agent in self.agents}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self._rng, self._turns, self.agents = np.random.default_rng(seed), 0, [*self.possible_agents]
        self._serve()
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        self._turns += 1
        self._ball += self._speed
        if abs(self._ball[1]) > 1.0:
            self._speed[1] = -self._speed[1]
        if abs(self._ball[0]) >= 1.0:
            self._serve()
        seen, agents, is_over = self._seen(), self.agents, self._turns >= 60
        self.agents = [] if is_over else agents
        return (
            seen,
            dict.fromkeys(agents, 0.0),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, is_over),
            {agent: {} for agent in agents},
        )


def served() -> Served:
    return Served()


def facts(env_id: str) -> GameFacts:
    admit([env_id] if HERE in env_id else [])
    play = RandomPlay(EnvConfig(env_id), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("game", "counts"), [("remembered", True), ("blurred", True), ("shown", False), ("drawn", False)]
)
def test_the_past_counts_where_it_tells_what_follows(game: str, counts: bool) -> None:
    assert facts(f"{HERE}:{game}").past_counts == counts


@pytest.mark.parametrize(
    ("game", "start", "last_step"),
    [
        ("cart_without_speeds", False, True),
        ("pendulum_without_speed", False, True),
        ("car_without_speed", False, True),
        ("served", False, True),
        ("filmed", True, False),
        ("filmed_and_shown", False, False),
        ("filmed_and_drawn", False, False),
    ],
)
def test_the_past_counts_where_numbers_never_come_twice(game: str, start: bool, last_step: bool) -> None:
    found = facts(f"{HERE}:{game}")
    assert (found.past_counts, found.last_step_counts) == (start, last_step)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0"])
def test_in_plain_games_the_past_does_not_count(name: str) -> None:
    found = facts(f"gymnasium:{name}")
    assert not found.past_counts and not found.last_step_counts


def test_noise_alone_is_never_taken_for_memory() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        seen, past, follows = rng.normal(size=(1_000, 3)), rng.normal(size=(1_000, 3)), rng.normal(size=(1_000, 4))
        assert not tells_more(seen, past, follows + seen[:, :1])


@pytest.mark.parametrize(("weight", "counts"), [(0.4, False), (4.0, True)])
def test_the_past_must_explain_most_of_what_is_left(weight: float, counts: bool) -> None:
    rng = np.random.default_rng(0)
    seen, past, noise = rng.normal(size=(1_000, 3)), rng.normal(size=(1_000, 3)), rng.normal(size=(1_000, 1))
    assert tells_more(seen, past, weight * past[:, :1] + noise) == counts


def test_a_rare_event_is_no_evidence() -> None:
    rng = np.random.default_rng(0)
    seen, past, follows = rng.normal(size=(1_000, 3)), np.zeros((1_000, 1)), np.zeros((1_000, 1))
    for row in (100, 300, 500, 700, 900):
        follows[row] = 1.0
    past[[100, 500, 900]] = 1.0
    assert not tells_more(seen, past, follows)


def test_chance_alone_is_never_taken_for_memory() -> None:
    rng = np.random.default_rng(0)
    found = Comparisons()
    for decision, past, outcome in rng.integers(0, (200, 3, 2), (40_000, 3)).tolist():
        found.note(decision, past, outcome)
    assert not found.past_counts


@pytest.mark.parametrize(("times", "counts"), [(36, False), (60, True)])
def test_an_outcome_that_follows_its_past_counts_once_it_was_seen_often(times: int, counts: bool) -> None:
    found = Comparisons()
    for turn in range(times):
        found.note(0, turn % 3, turn % 3)
    assert found.past_counts == counts
