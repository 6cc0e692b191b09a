"""Othello on bitboards against lists and loops, against OpenSpiel, and in the hands of search."""

from __future__ import annotations

import numpy as np
import pyspiel
import pytest

from league.envs.bots import make_bot
from league.envs.conformance import check_env
from league.envs.games.othello import PASS, Othello
from league.envs.protocol import EnvConfig, EnvError
from league.envs.sampling import uniform_legal
from tests.envs.oracles.slow_othello import SlowOthello


def test_every_turn_equals_the_slow_game() -> None:
    env, rng = Othello(num_envs=24), np.random.default_rng(1)
    slow, turn = [SlowOthello() for _ in range(24)], env.reset(0)
    outcomes, passes = [], 0
    for _ in range(130):
        assert turn.action_mask is not None
        for game, board in enumerate(slow):
            assert np.flatnonzero(turn.action_mask[game]).tolist() == board.legal()
            assert turn.obs["board"][game].tolist() == board.planes()
            assert turn.seat[game] == board.seat
        actions = uniform_legal(turn.action_mask, rng)
        passes += int((actions == PASS).sum())
        turn = env.step(actions)
        for game, board in enumerate(slow):
            ended = board.play(int(actions[game]))
            assert turn.terminated[game] == (ended is not None)
            assert turn.rewards[game].tolist() == turn.returns[game].tolist() == (ended or [0.0, 0.0])
            if ended is not None:
                outcomes.append(ended[0])
                slow[game] = SlowOthello()
    assert passes > 5
    assert {1.0, -1.0} <= set(outcomes)


def test_games_equal_openspiels() -> None:
    game, rng = pyspiel.load_game("othello"), np.random.default_rng(2)
    env, states = Othello(num_envs=64), [game.new_initial_state() for _ in range(64)]
    turn, num_ended = env.reset(0), 0
    for _ in range(200):
        assert turn.action_mask is not None
        for row, state in enumerate(states):
            assert np.flatnonzero(turn.action_mask[row]).tolist() == state.legal_actions()
            assert turn.seat[row] == state.current_player()
        actions = uniform_legal(turn.action_mask, rng)
        turn = env.step(actions)
        for row, state in enumerate(states):
            state.apply_action(int(actions[row]))
            assert turn.terminated[row] == state.is_terminal()
            if state.is_terminal():
                assert turn.returns[row].tolist() == state.returns()
                states[row], num_ended = game.new_initial_state(), num_ended + 1
    assert num_ended > 100


def test_othello_keeps_the_contract_of_envs() -> None:
    for kwargs in ({}, {"opening_plies": 6}):
        found = check_env(EnvConfig("othello", kwargs), num_envs=8, steps=150)
        assert not [finding for finding in found if finding.kind == "fault"]


def test_openings_are_played_and_differ() -> None:
    env = Othello(num_envs=200, opening_plies=5)
    turn = env.reset(3)
    assert (turn.obs["board"].sum(axis=(1, 2, 3)) == 9).all()
    assert (turn.seat == 1).all()
    assert len(np.unique(turn.obs["board"], axis=0)) > 100


@pytest.mark.parametrize("action", [-1, 65, 0, PASS, 27])
def test_an_illegal_action_names_the_legal_ones(action: int) -> None:
    env = Othello(num_envs=2)
    env.reset(0)
    with pytest.raises(EnvError, match=rf"action {action} is illegal in game 1; legal are \[19, 26, 37, 44\]"):
        env.step(np.array([19, action]))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"num_envs": 0}, "num_envs is 0"), ({"num_envs": 1, "opening_plies": 31}, r"an int in \[0, 30\]")],
)
def test_options_out_of_range_name_the_range(kwargs: dict[str, int], message: str) -> None:
    with pytest.raises(EnvError, match=message):
        Othello(**kwargs)


def test_saved_games_are_for_as_many_games() -> None:
    saved = Othello(num_envs=2).save()
    with pytest.raises(EnvError, match="saved for 2 games, this env has 3"):
        Othello(num_envs=3).load(saved)


def test_search_beats_random_play() -> None:
    env, search, rng = Othello(num_envs=12), make_bot("mcts:12", seed=0), np.random.default_rng(0)
    turn, results = env.reset(0), {}
    searched = np.arange(12) % 2  # the seat that searches in each game
    while len(results) < 12:
        assert turn.action_mask is not None
        actions, mine = uniform_legal(turn.action_mask, rng), np.flatnonzero(turn.seat == searched)
        actions[mine] = search.act(env, turn, mine)
        turn = env.step(actions)
        for game in np.flatnonzero(turn.ended).tolist():
            results.setdefault(game, float(turn.returns[game, searched[game]]))
    assert np.mean(list(results.values())) > 0.5
