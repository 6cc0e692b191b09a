"""Team matrices: who earns what, the trap in which no seat alone finds the way out, and random tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from league.envs.games.team_matrix import TRAP, TeamMatrix
from league.envs.protocol import EnvError


def test_a_team_with_the_higher_rank_wins_and_partners_earn_alike() -> None:
    table = TeamMatrix(num_envs=1).payoffs
    for a, b, c, d in itertools.product(range(3), repeat=4):
        won = np.sign(TRAP[a][b] - TRAP[c][d])
        assert table[a, b, c, d].tolist() == [won, won, -won, -won]


def test_from_even_play_each_seat_does_best_with_the_trap_and_alone_cannot_leave_it() -> None:
    first = TeamMatrix(num_envs=1).payoffs[..., 0]
    even = first.mean(axis=(1, 2, 3))
    assert even.argmax() == 1
    trapped = first[:, 1, 1, 1]
    assert trapped.argmax() == 1 and np.sort(trapped)[-1] == 0 == first[1, 1, 1, 1]
    assert first[0, 0, 1, 1] == 1  # both seats together do


def test_a_random_table_is_fair_to_both_teams_and_the_same_for_a_seed() -> None:
    table = TeamMatrix(num_envs=2, seed=7, num_actions=4).payoffs[..., 0]
    joint = table.reshape(16, 16)
    assert (joint == -joint.T).all() and 0.5 < np.abs(joint).max() <= 1.0
    assert (table == TeamMatrix(num_envs=1, seed=7, num_actions=4).payoffs[..., 0]).all()
    assert (table != TeamMatrix(num_envs=1, seed=8, num_actions=4).payoffs[..., 0]).any()


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"ranks": [[1, 2]]}, r"ranks are \[1, 2\]; give a square of 2 to 8 rows"),
        ({"ranks": [[1, "x"], [0, 0]]}, "no table of numbers"),
        ({"ranks": [[1, float("inf")], [0, 0]]}, "finite"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0, "num_actions": 9}, "num_actions 9"),
    ],
)
def test_tables_that_are_none_are_refused(kwargs: dict, words: str) -> None:
    with pytest.raises(EnvError, match=words):
        TeamMatrix(num_envs=1, **kwargs)
