"""Seats that always earn the same and are on no team: the remark that names them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from envs.facts.game_statistics import equal_seats
from envs.protocol import EnvConfig
from envs.registry import spec_of
from league.run.undeclared_teams import team_remark
from tests.envs.oracles.raw_roles import RawRoles

HERE = "tests.league.run.test_undeclared_teams"


class Shared(RawRoles):
    """Reds share what they earn, which is drawn anew in each game; blue earns the opposite of it."""

    def __init__(self) -> None:
        names = ("red_0", "red_1", "blue_0")
        super().__init__(dict.fromkeys(names, 1), dict.fromkeys(names, spaces.Discrete(2)), length=3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.worth = float(np.random.default_rng(seed).normal())
        return super().reset(seed, options)

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, *rest = super().step(actions)
        return observations, {seat: self.worth * (-1) ** (seat == "blue_0") for seat in rewards}, *rest


class Alone(Shared):
    """Everybody earns something else."""

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, *rest = super().step(actions)
        return observations, {seat: reward * len(seat) + int(seat[-1]) for seat, reward in rewards.items()}, *rest


class Broken(Shared):
    """Raises in its first step."""

    def step(self, actions: dict[str, Any]) -> Any:
        raise RuntimeError("the ball rolled off")


def remark_on(config: EnvConfig, **clock: Any) -> str:
    return team_remark(config, spec_of(config), **clock)


def test_seats_that_share_returns_without_a_team_are_named() -> None:
    remark = remark_on(EnvConfig(f"{HERE}:Shared"))
    assert remark.startswith(
        "red_0, red_1 earned the same in each of 16 random games, but every seat plays for itself."
    )
    assert remark.endswith("env.teams: [[red_0, red_1], ...]")
    assert remark_on(EnvConfig(f"{HERE}:Shared", teams=(("red_*",), ("blue_*",)))) == ""
    assert remark_on(EnvConfig(f"{HERE}:Alone")) == ""


def test_games_that_do_not_end_in_time_are_not_judged() -> None:
    ticks = iter(np.arange(100.0))
    assert remark_on(EnvConfig(f"{HERE}:Shared"), clock=lambda: next(ticks)) == ""


def test_what_fails_is_left_to_the_training() -> None:
    assert remark_on(EnvConfig(f"{HERE}:Broken")) == ""


def test_the_same_number_in_every_game_tells_nothing() -> None:
    assert equal_seats(np.array([[1, 1, 2], [1, 1, 2]], np.float32)) == []
    assert equal_seats(np.array([[1, 2, 1, 2], [3, 4, 3, 5]], np.float32)) == [[0, 2]]
