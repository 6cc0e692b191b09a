"""The interaction of two seats' actions in the reward: against a plain analysis of variance, and on games."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from league.envs.facts.joint_actions import interaction_share
from league.envs.facts.random_play import RandomPlay
from league.envs.protocol import EnvConfig


def plain_share(table: NDArray[np.float64], noise: float) -> float:
    """The share for a table of mean rewards by both actions, all equally likely, and the variance beside them."""
    centred = table - table.mean()
    rest = centred - centred.mean(axis=1, keepdims=True) - centred.mean(axis=0, keepdims=True)
    return float((rest**2).mean() / ((centred**2).mean() + noise))


@pytest.mark.parametrize(
    "table",
    [
        np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]),
        np.array([[0.0, 1, 2], [3, 4, 5]]),
        np.array([[0.0, -1], [2, -4]]),
        np.zeros((4, 4)),
    ],
    ids=["guessing", "additive", "chicken", "nothing"],
)
def test_the_share_is_that_of_an_analysis_of_variance(table: NDArray[np.float64]) -> None:
    rng = np.random.default_rng(0)
    own, other = (rng.integers(0, size, 20_000) for size in table.shape)
    rewards = table[own, other] + rng.normal(size=own.size)
    assert interaction_share(own, other, rewards) == pytest.approx(plain_share(table, 1.0), abs=0.01)


def test_too_few_turns_for_so_many_actions_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    own, other = rng.integers(0, 40, (2, 2_000))
    assert interaction_share(own, other, rng.normal(size=own.size)) is None


@pytest.mark.parametrize(
    ("env_id", "low", "high"), [("repeated_rock_paper_scissors", 0.9, 1.0), ("rock_paper_scissors", 0.9, 1.0)]
)
def test_a_guessing_game_is_recognised(env_id: str, low: float, high: float) -> None:
    play = RandomPlay(EnvConfig(env_id), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None and found.interaction is not None
    assert low <= found.interaction <= high + 0.02


def test_a_game_in_turns_has_no_joint_actions() -> None:
    play = RandomPlay(EnvConfig("tic_tac_toe"), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None and found.interaction is None
