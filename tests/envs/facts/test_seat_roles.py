"""Roles that views do not tell apart: found where rewards differ or views are always equal, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from league.envs.facts.game_facts import GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.facts.seat_roles import differ
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


def plain_difference(cells: NDArray[np.int64], is_first: NDArray[np.bool_], rewards: NDArray[np.float64]) -> float:
    """The sum of Welch's squares over cells, one by one."""
    total = 0.0
    for cell in np.unique(cells):
        one, two = (rewards[(cells == cell) & side] for side in (is_first, ~is_first))
        total += (one.mean() - two.mean()) ** 2 / (one.var(ddof=1) / one.size + two.var(ddof=1) / two.size)
    return total


def test_equal_means_with_stakes_of_many_sizes_are_no_difference() -> None:
    """Rare cells of large stakes: a pooled spread would take their chance for a difference."""
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        cells = rng.geometric(0.3, 4_000)
        rewards = rng.choice([-1.0, 1.0], cells.size) * cells.astype(np.float64) ** 2
        wrong += differ(cells, rng.random(cells.size) < 0.5, rewards)[1]
    assert wrong == 0


def test_a_difference_in_one_cell_of_many_is_found() -> None:
    rng = np.random.default_rng(0)
    cells, is_first = rng.integers(0, 6, 4_000), rng.random(4_000) < 0.5
    rewards = rng.normal(size=4_000) + 0.8 * (cells == 2) * np.where(is_first, 1.0, -1.0)
    assert differ(cells, is_first, rewards) == (1.0, True)
    assert plain_difference(cells, is_first, rewards) > 100.0
    assert differ(cells, is_first, rng.normal(size=4_000)) == (1.0, False)


def test_cells_that_only_one_seat_had_tell_nothing() -> None:
    cells = np.repeat([0, 1], 50)
    assert differ(cells, cells == 0, np.where(cells == 0, 1.0, -1.0)) == (0.0, False)
    assert differ(cells[:0], cells[:0] == 0, np.zeros(0)) == (0.0, False)
