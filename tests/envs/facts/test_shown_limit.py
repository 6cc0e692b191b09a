"""Tasks of a lone seat that a time limit cuts off, with and without the time in sight."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from league.envs.facts.game_facts import GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig


class Walk(gymnasium.Env[dict[str, Any], int]):
    """A random walk.

    Args:
      limit: steps until the walk is cut off. clock: what shows the time: "none", "left", "steps" or "one_hot".
      ends: whether the limit is an end of the task instead.
    """

    def __init__(self, limit: int = 6, clock: str = "none", ends: bool = False) -> None:
        self._limit, self._clock, self._ends = limit, clock, ends
        self.observation_space = spaces.Dict(
            {
                "clock": spaces.Box(0, limit, (limit + 1,), np.float32),
                "picture": spaces.Box(0, 255, (4, 4, 3), np.uint8),
                "place": spaces.Box(-np.inf, np.inf, (1,), np.float64),
            }
        )
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._steps, self._place = 0, 0.0
        return self._view(), {}

    def step(self, action: int) -> Any:
        self._steps += 1
        self._place += float(self.np_random.normal())
        is_over = self._steps == self._limit
        return self._view(), 1.0, is_over and self._ends, is_over and not self._ends, {}

    def _view(self) -> dict[str, Any]:
        clock, left = np.zeros(self._limit + 1, np.float32), self._limit - self._steps
        clock[:] = {"none": 0, "left": left, "steps": self._steps, "one_hot": np.arange(len(clock)) == left}[
            self._clock
        ]
        return {
            "clock": clock,
            "picture": np.full((4, 4, 3), self._steps, np.uint8),
            "place": np.array([self._place]),
        }


admit(f"{__name__}:Walk")


def facts_of(env_id: str = f"{__name__}:Walk", **kwargs: object) -> GameFacts:
    play = RandomPlay(EnvConfig(env_id, kwargs), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None
    return found


@pytest.mark.parametrize("clock", ["left", "steps", "one_hot"])
def test_a_limit_is_shown_by_a_number_that_only_comes_at_the_end(clock: str) -> None:
    assert facts_of(clock=clock).limit_is_shown
    assert not facts_of(clock=clock, ends=True).limit_is_shown, "an end is no limit"


def test_a_limit_is_not_shown_by_places_that_others_decide_from() -> None:
    assert not facts_of().limit_is_shown


@pytest.mark.parametrize("env_id", ["gymnasium:Pendulum-v1", "gymnasium:MountainCar-v0"])
def test_tasks_of_gymnasium_do_not_show_their_limits(env_id: str) -> None:
    assert not facts_of(env_id).limit_is_shown
