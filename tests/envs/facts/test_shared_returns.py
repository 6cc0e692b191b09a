"""Seats are a team where they return the same or nearly so; a common length, stake or accident makes no team."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from league.envs.facts.shared_returns import (
    MANY_EPISODES,
    MANY_REWARDS,
    equal_seats,
    seats_paid_alike,
    seats_with_one_interest,
)

GAMES = 100
Array = NDArray[np.float64]


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def test_the_same_number_in_every_game_makes_no_team() -> None:
    assert equal_seats(np.array([[1, 1, 2], [1, 1, 2]], np.float32)) == []
    assert equal_seats(np.array([[1, 2, 1, 2], [3, 4, 3, 5]], np.float32)) == [[0, 2]]


def test_seats_that_are_paid_a_little_apart_are_a_team() -> None:
    common = drawn(GAMES, 1)
    returns = np.hstack([common, common, drawn(GAMES, 1, seed=1)]) + 0.05 * drawn(GAMES, 3, seed=2)
    assert seats_with_one_interest(returns, [25] * GAMES) == ((0, 1),)
    # Two teams against each other.
    returns = np.hstack([common, -common, common, -common]) + 0.05 * drawn(GAMES, 4, seed=2)
    assert seats_with_one_interest(returns, [25] * GAMES) == ((0, 2), (1, 3))
    # Fewer games do not tell.
    few = MANY_EPISODES - 1
    assert seats_with_one_interest(returns[:few], [25] * few) == ()


def test_who_wants_something_else_is_no_partner() -> None:
    common = drawn(GAMES, 1)
    returns = np.hstack([common, common]) + 0.7 * drawn(GAMES, 2, seed=1)
    assert seats_with_one_interest(returns, [25] * GAMES) == ()


def test_a_race_makes_no_team_although_every_turn_costs_all_the_same() -> None:
    turns = np.random.default_rng(0).integers(5, 200, GAMES)
    winner = np.random.default_rng(1).integers(0, 2, GAMES)
    returns = -np.stack([turns, turns], axis=1) + np.stack([winner, 1 - winner], axis=1).astype(np.float64)
    assert np.corrcoef(returns.T)[0, 1] > 0.99
    assert seats_with_one_interest(returns, turns.tolist()) == ()


def test_a_common_accident_makes_no_team() -> None:
    margin = drawn(GAMES)
    returns = np.stack([margin, -margin], axis=1)
    returns[0] = -1000.0
    assert np.corrcoef(returns.T)[0, 1] > 0.99
    assert seats_with_one_interest(returns, [25] * GAMES) == ()


def test_equal_returns_that_the_length_alone_decides_still_make_a_team() -> None:
    turns = np.random.default_rng(0).integers(5, 200, GAMES)
    assert seats_with_one_interest(np.stack([-turns, -turns], axis=1).astype(np.float64), turns.tolist()) == ((0, 1),)


@pytest.mark.parametrize("games", [0, 1, 40])
def test_one_seat_is_no_team(games: int) -> None:
    assert seats_with_one_interest(drawn(games, 1), [25] * games) == ()


EVERY_TURN = [1] * MANY_REWARDS
IRREGULAR = [1, 4, 2] * (MANY_REWARDS // 3)


def test_equal_rewards_of_many_sizes_make_a_team_before_any_episode_has_ended() -> None:
    common = drawn(MANY_REWARDS, 1)
    rewards = np.hstack([common, common, drawn(MANY_REWARDS, 1, seed=1)])
    assert seats_paid_alike(rewards, EVERY_TURN) == ((0, 1),)
    assert seats_paid_alike(rewards[1:], EVERY_TURN[1:]) == ()
    # What every turn costs is paid by opponents as well.
    assert seats_paid_alike(np.full((MANY_REWARDS, 2), -0.1), EVERY_TURN) == ()
    assert seats_paid_alike(np.where(common > 0, [[-0.1, -0.1]], [[-0.2, -0.2]]), EVERY_TURN) == ()
    assert seats_paid_alike(np.zeros((0, 2)), []) == ()


def test_equal_rewards_of_one_size_at_irregular_times_make_a_team_and_a_fee_of_every_round_does_not() -> None:
    ones = np.ones((MANY_REWARDS, 2))
    assert seats_paid_alike(ones, IRREGULAR) == ((0, 1),)
    assert seats_paid_alike(ones, [5] * MANY_REWARDS) == ()
    assert seats_paid_alike(np.hstack([ones, np.zeros((MANY_REWARDS, 2))]), IRREGULAR) == ((0, 1),)
    apart = ones.copy()
    apart[7, 1] = 0.0
    assert seats_paid_alike(apart, IRREGULAR) == ()
