"""Connect Four and tic-tac-toe on bitboards against the same games in lists and loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from league.envs.games.connect_four import ConnectFour
from league.envs.games.k_in_a_row import StoneGame
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import EnvError
from league.envs.sampling import uniform_legal
from tests.envs.oracles.lockstep import own_copy
from tests.envs.oracles.slow_boards import SlowBoard, slow_connect_four, slow_tic_tac_toe

GAMES = [
    pytest.param(ConnectFour, slow_connect_four, id="connect_four"),
    pytest.param(TicTacToe, slow_tic_tac_toe, id="tic_tac_toe"),
]


@pytest.mark.parametrize(("fast", "slow"), GAMES)
def test_every_turn_equals_the_slow_game(fast: type[StoneGame], slow: Callable[[], SlowBoard]) -> None:
    env, rng = fast(num_envs=40), np.random.default_rng(1)
    boards = [slow() for _ in range(40)]
    turn = env.reset(0)
    outcomes = set()
    for _ in range(120):
        assert turn.action_mask is not None
        for game, board in enumerate(boards):
            assert np.flatnonzero(turn.action_mask[game]).tolist() == board.legal()
            assert turn.obs["board"][game].tolist() == board.planes()
            assert turn.seat[game] == board.seat
        actions = uniform_legal(turn.action_mask, rng)
        turn = env.step(actions)
        for game, board in enumerate(boards):
            mover = board.seat
            outcome = board.place(int(actions[game]))
            outcomes.add(outcome)
            expected = [0.0, 0.0]
            if outcome == "win":
                expected[mover], expected[1 - mover] = 1.0, -1.0
            assert turn.rewards[game].tolist() == expected
            assert turn.returns[game].tolist() == expected
            assert bool(turn.terminated[game]) == (outcome != "on")
            if outcome != "on":
                boards[game] = slow()
    assert "win" in outcomes
    assert not turn.truncated.any()


def test_a_full_board_without_a_line_is_a_draw() -> None:
    env = ConnectFour(num_envs=1)
    turn = env.reset(0)
    # Columns in an order that never lines up four: pairs of columns filled alternately.
    for column in [0, 1] * 2 + [1, 0] * 2 + [0, 1] * 2 + [2, 3] * 2 + [3, 2] * 2 + [2, 3] * 2 + [4, 5] * 2 + [5, 4] * 2:
        turn = env.step(np.array([column]))
        assert not turn.terminated[0]
    for column in [4, 5] * 2 + [6] * 6:
        assert not turn.terminated[0]
        turn = env.step(np.array([column]))
    assert turn.terminated[0]
    assert turn.returns.tolist() == [[0.0, 0.0]]


def test_no_line_runs_round_the_edge() -> None:
    env = ConnectFour(num_envs=1)
    env.reset(0)
    # First: bottom of columns 4, 5, 6, and column 0 one row up, which a board without a guard would join.
    for column in [4, 0, 5, 4, 6, 5]:
        assert not env.step(np.array([column])).terminated[0]
    assert not env.step(np.array([0])).terminated[0]


def test_uniform_play_has_the_known_statistics() -> None:
    env, rng = ConnectFour(num_envs=4096), np.random.default_rng(0)
    turn, done = env.reset(0), np.zeros(4096, np.bool_)
    lengths, first_scores, draws = np.zeros(4096), np.zeros(4096), 0
    for ply in range(1, 43):
        assert turn.action_mask is not None
        turn = env.step(uniform_legal(turn.action_mask, rng))
        new = turn.ended & ~done
        lengths[new] = ply
        first_scores[new] = (turn.returns[new, 0] + 1) / 2
        draws += int((turn.returns[new, 0] == 0).sum())
        done |= new
    assert done.all()
    assert 20.8 < lengths.mean() < 21.7  # standard error 0.12
    assert 0.53 < first_scores.mean() < 0.58  # standard error 0.008
    assert 0.001 < draws / 4096 < 0.006


@pytest.mark.parametrize(("fast", "slow"), GAMES)
def test_openings_are_uniform_plies_that_end_nothing(fast: type[StoneGame], slow: Callable[[], SlowBoard]) -> None:
    env = fast(num_envs=3000, opening_plies=2)
    turn = env.reset(5)
    boards, counts = np.unique(turn.obs["board"], axis=0, return_counts=True)
    num_openings = sum(len(_after(slow, first)) for first in slow().legal())
    assert len(boards) == num_openings
    assert counts.max() < 3 * 3000 / num_openings
    assert (turn.obs["board"].sum(axis=(1, 2, 3)) == 2).all()
    assert (turn.seat == 0).all()


def test_long_openings_are_unfinished_games() -> None:
    env = TicTacToe(num_envs=500, opening_plies=4)
    turn = env.reset(0)
    assert (turn.obs["board"].sum(axis=(1, 2, 3)) == 4).all()
    deep = ConnectFour(num_envs=300, opening_plies=21)
    turn = deep.reset(0)
    assert (turn.seat == 1).all()
    assert not deep._has_line(deep._own).any()
    assert not deep._has_line(deep._other).any()


def test_openings_of_a_range_have_each_length_alike_often_and_end_nothing() -> None:
    env = ConnectFour(num_envs=4_000, opening_plies=[3, 10])
    turn = env.reset(1)
    stones = turn.obs["board"].sum(axis=(1, 2, 3))
    assert (turn.seat == stones % 2).all()
    counts = np.bincount(stones, minlength=11)
    assert not counts[:3].any() and counts.sum() == 4_000
    assert abs(counts[3:] - 500).max() < 90  # standard error 21
    assert not env._has_line(env._own).any() and not env._has_line(env._other).any()


def test_restarts_open_at_random_again() -> None:
    env, rng = ConnectFour(num_envs=64, opening_plies=3), np.random.default_rng(0)
    turn, starts = env.reset(0), []
    for _ in range(80):
        assert turn.action_mask is not None
        turn = env.step(uniform_legal(turn.action_mask, rng))
        starts.extend(board.tobytes() for board in turn.obs["board"][turn.ended])
        assert (turn.obs["board"][turn.ended].sum(axis=(1, 2, 3)) == 3).all()
    assert len(set(starts)) > len(starts) // 2


@pytest.mark.parametrize("action", [-1, 7, 3])
def test_an_illegal_action_is_refused_and_changes_nothing(action: int) -> None:
    env = ConnectFour(num_envs=2)
    env.reset(0)
    for _ in range(6):
        turn = env.step(np.array([3, 0]))
    before = own_copy(turn)
    with pytest.raises(EnvError, match="is illegal in game 0; legal are"):
        env.step(np.array([action, 1]))
    after = env.fork(np.arange(2))[1]
    assert np.array_equal(before.obs["board"], after.obs["board"])
    assert np.array_equal(before.action_mask, after.action_mask)


@pytest.mark.parametrize("bad", [np.zeros(3, np.int64), np.zeros(2, np.float32), np.zeros((2, 1), np.int64)])
def test_actions_of_another_shape_or_dtype_are_refused(bad: np.ndarray) -> None:
    env = ConnectFour(num_envs=2)
    env.reset(0)
    with pytest.raises(EnvError, match="expected int64"):
        env.step(bad)


def test_a_fork_is_independent_of_its_origin() -> None:
    env, rng = ConnectFour(num_envs=8, opening_plies=2), np.random.default_rng(0)
    turn = env.reset(0)
    for _ in range(9):
        assert turn.action_mask is not None
        turn = env.step(uniform_legal(turn.action_mask, rng))
    saved, chosen = env.save(), np.array([3, 3, 0])
    forked, shown = env.fork(chosen)
    assert np.array_equal(shown.obs["board"], turn.obs["board"][chosen])
    assert not shown.ended.any()
    for _ in range(30):
        assert shown.action_mask is not None
        shown = forked.step(uniform_legal(shown.action_mask, rng))
    assert all(np.array_equal(array, env.save()[name]) for name, array in saved.items())


@pytest.mark.parametrize("plies", [22, -1, [0, 22], [5, 2], [1], "2", None])
def test_opening_plies_out_of_range_name_the_range(plies: Any) -> None:
    said = f"opening_plies is {plies!r}; it must be an int in [0, 21], or the least and the most of such"
    with pytest.raises(EnvError, match=re.escape(said)):
        ConnectFour(num_envs=1, opening_plies=plies)


def _after(slow: Callable[[], SlowBoard], first: int) -> list[int]:
    board = slow()
    board.place(first)
    return board.legal()
