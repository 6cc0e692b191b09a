"""The perfect player: against plain minimax on every position of tic-tac-toe, and what it refuses."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from league.envs.bots import make_bot
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@functools.cache
def slow_worth(own: frozenset[int], other: frozenset[int]) -> dict[int, int]:
    """Cell -> 1 win, 0 draw, -1 loss of the seat to move under best play."""
    worth = {}
    for cell in set(range(9)) - own - other:
        marks = own | {cell}
        if any(set(line) <= marks for line in LINES):
            worth[cell] = 1
        elif len(marks | other) == 9:
            worth[cell] = 0
        else:
            worth[cell] = -max(slow_worth(other, marks).values())
    return worth


def best_moves(own: frozenset[int], other: frozenset[int]) -> set[int]:
    worth = slow_worth(own, other)
    return {cell for cell, value in worth.items() if value == max(worth.values())}


def test_every_move_is_one_of_the_best_and_all_of_the_best_are_played():
    """A hundred random games side by side; the bot is asked everywhere, and random moves go on."""
    env, bot, rng = TicTacToe(num_envs=100), make_bot("minimax", seed=3), np.random.default_rng(0)
    turn, chosen = env.reset(0), {}
    for _ in range(30):
        actions = bot.act(env, turn, np.arange(100))
        for board, action in zip(turn.obs["board"], actions, strict=True):
            own, other = (frozenset(np.flatnonzero(plane.ravel()).tolist()) for plane in board)
            assert int(action) in best_moves(own, other)
            chosen.setdefault((own, other), set()).add(int(action))
        assert turn.action_mask is not None
        turn = env.step(np.array([rng.choice(np.flatnonzero(row)) for row in turn.action_mask]))
    assert chosen[frozenset(), frozenset()] == set(range(9))  # every opening draws


def test_minimax_against_minimax_is_always_a_draw():
    env, bot = TicTacToe(num_envs=50), make_bot("minimax", seed=0)
    turn = env.reset(0)
    for _ in range(9):
        turn = env.step(bot.act(env, turn, turn.env_index))
    assert turn.ended.all()
    assert not turn.returns.any()


def test_asking_leaves_the_games_as_they_are_and_may_be_about_some_or_none():
    env, bot = TicTacToe(num_envs=3), make_bot("minimax", seed=0)
    turn = env.reset(0)
    before = env.save()
    assert bot.act(env, turn, np.array([2, 0])).shape == (2,)
    assert bot.act(env, turn, np.zeros(0, np.int64)).shape == (0,)
    for name, array in env.save().items():
        assert np.array_equal(array, before[name])


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("connect_four", "games of at most 20,000 positions, connect_four has more; use mcts:N"),
        ("kuhn_poker", "hides"),
        ("rock_paper_scissors", "one seat to act at a time"),
        ("gymnasium:CartPole-v1", "plays games of two seats"),
    ],
)
def test_games_that_cannot_be_worked_out_are_refused(env_id: str, words: str):
    env = make(EnvConfig(env_id), num_envs=2)
    turn = env.reset(0)
    with pytest.raises(EnvError, match=words):
        make_bot("minimax", seed=0).act(env, turn, np.arange(turn.env_index.size))
