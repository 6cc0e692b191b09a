"""Roles that views do not tell apart: found where rewards differ or views are always equal, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from benchmarks.games.role_errors import games_of, sees_roles
from benchmarks.games.role_games import ROLES, SYMMETRIC
from league.envs.facts.game_facts import GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.facts.seat_exchange import by_cell, exchange_is_seen
from league.envs.facts.seat_roles import effect_of_seat
from league.envs.protocol import EnvConfig
from tests.envs.oracles.raw_roles import RawRoles

PENNIES = np.array([[1.0, -1.0], [-1.0, 1.0]])
CYCLE = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
APART = ((0,), (1,))


class Matrix(RawRoles):
    """Two seats with views of their own that play a zero-sum matrix in every round; `noise` goes with each reward."""

    payoffs, noise, scale = PENNIES, 0.0, 1.0

    def __init__(self) -> None:
        names = ("one", "two")
        super().__init__(dict.fromkeys(names, 1), dict.fromkeys(names, spaces.Discrete(len(self.payoffs))), length=3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.rng = np.random.default_rng(seed)
        return super().reset(seed, options)

    def step(self, actions: dict[str, Any]) -> Any:
        observations, _, *rest = super().step(actions)
        won = float(self.payoffs[actions["one"], actions["two"]] + self.noise * self.rng.normal())
        return observations, {"one": won * self.scale, "two": -won}, *rest


class Pennies(Matrix):
    """Both see the number of the round alone."""

    def seen(self, agents: Sequence[str]) -> dict[str, np.ndarray]:
        return {agent: np.full(1, self.steps, np.float32) for agent in agents}


class NoisyPennies(Pennies):
    noise = 2.0


class Cycle(Pennies):
    payoffs = CYCLE


class NoisyCycle(Cycle):
    noise = 2.0


class Uneven(Matrix):
    scale = 1e-4


class SameState(Matrix):
    """Both see the same numbers, which never come again."""

    def seen(self, agents: Sequence[str]) -> dict[str, np.ndarray]:
        return dict.fromkeys(agents, self.rng.random(1, dtype=np.float32))


def facts_of(game: str) -> GameFacts:
    play = RandomPlay(EnvConfig(f"{__name__}:{game}"), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("game", "why"),
    [
        ("Pennies", "one and two see the same and are paid differently"),
        ("NoisyPennies", "one and two see the same and are paid differently"),
        ("SameState", "one and two always see the same, which does not say who is who"),
        ("Uneven", "one and two earn on scales of their own"),
    ],
)
def test_seats_that_must_not_share_are_found(game: str, why: str) -> None:
    found = facts_of(game)
    assert found.roles == APART
    assert found.roles_differ.startswith(why)


@pytest.mark.parametrize("game", ["Cycle", "NoisyCycle", "Matrix"])
def test_seats_of_a_symmetric_game_and_seats_with_views_of_their_own_may_share(game: str) -> None:
    assert facts_of(game).roles == ()


@pytest.mark.parametrize(("family", "number"), games_of(SYMMETRIC, 2 * len(SYMMETRIC)))
def test_seats_of_a_symmetric_game_are_not_told_apart(family: str, number: int) -> None:
    """Hidden scores, rare and heavy winnings, random first movers, constant payoffs: 36 plays without a false alarm."""
    assert not any(sees_roles(family, number, num_envs=16, turns=60, seed=seed) for seed in range(2))


@pytest.mark.parametrize("family", ROLES)
def test_roles_that_views_do_not_tell_are_found(family: str) -> None:
    assert all(sees_roles(family, number, num_envs=16, turns=60, seed=number) for number in range(2))


def test_few_games_tell_nothing() -> None:
    assert not sees_roles("pennies", 0, num_envs=4, turns=6, seed=0)


def test_untrue_answers_are_as_rare_as_stated() -> None:
    """Blocks with heavy tails: about one in twenty is asked for, and 400 answers stray from 20 by three deviations."""
    rng = np.random.default_rng(0)
    untrue = sum(
        exchange_is_seen([rng.standard_t(2, (30, 6)), rng.normal(size=(30, 1))], error_rate=0.05) for _ in range(400)
    )
    assert 6 <= untrue <= 34


def test_a_difference_that_is_there_is_seen_whether_by_draws_or_by_the_bound() -> None:
    rng = np.random.default_rng(0)
    for shift in (1.0, 6.0):
        assert exchange_is_seen([rng.normal(size=(100, 3)) + shift * np.eye(3)[0]], error_rate=1e-4)


def test_the_difference_of_a_cell_is_taken_about_its_mean() -> None:
    cells, is_first = np.array([5, 5, 5, 5, 9]), np.array([True, True, False, False, True])
    differences = by_cell(
        cells, is_first, np.array([3.0, 1.0, 0.0, 0.0, 7.0]), np.array([0, 1, 0, 1, 0]), min_decisions=2
    )
    assert differences.tolist() == [[3.0], [1.0]], "means are 1: (3 - 1) - (0 - 1) and (1 - 1) - (0 - 1)"
    assert not by_cell(cells, is_first, np.full(5, 0.1), np.zeros(5, np.int64), min_decisions=2).any()


def test_the_seat_explains_the_share_of_variance_between_the_means() -> None:
    rng = np.random.default_rng(0)
    cells, is_first = rng.integers(0, 6, 4_000), rng.random(4_000) < 0.5
    rewards = rng.normal(size=4_000) + 0.8 * (cells == 2) * np.where(is_first, 1.0, -1.0)
    share, effect = effect_of_seat(cells, is_first, rewards)
    assert share == 1.0
    assert effect == pytest.approx(0.64 / 6 / (1 + 0.64 / 6), rel=0.2)
    only_one = np.repeat([0, 1], 50)
    assert effect_of_seat(only_one, only_one == 0, np.where(only_one == 0, 1.0, -1.0)) == (0.0, 0.0)
    assert effect_of_seat(cells[:0], is_first[:0], rewards[:0]) == (0.0, 0.0)
