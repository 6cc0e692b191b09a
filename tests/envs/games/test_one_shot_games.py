"""The one-shot games in which no single choice is best: their tables, teams and seats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from league.envs.games.cyclic import CyclicGame, DiscGame
from league.envs.games.matrix import is_win_draw_loss
from league.envs.games.normal_form import NormalFormGame, TeamRockPaperScissors, ThreeSeatRockPaperScissors
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make

ROCK, PAPER, SCISSORS = 0, 1, 2


@pytest.mark.parametrize(
    ("env_id", "kwargs", "low", "high", "win_draw_loss"),
    [
        ("connect_four", {}, -1, 1, True),
        ("tic_tac_toe", {}, -1, 1, True),
        ("rock_paper_scissors", {"stakes": (2, 2, 2)}, -2, 2, True),
        ("rock_paper_scissors", {"stakes": (1, 2, 3)}, -3, 3, False),
        ("repeated_rock_paper_scissors", {"rounds": 4}, -4, 4, False),
        ("matrix_game", {"payoffs": ((1, 0), (0, 1)), "second_payoffs": ((1, 0), (0, 1))}, 0, 1, False),
        ("cyclic_game", {}, -1, 1, True),
        ("disc_game", {}, -1, 1, False),
        ("three_seat_rock_paper_scissors", {}, -1, 1, False),
        ("team_rock_paper_scissors", {}, -1, 1, True),
        ("kuhn_poker", {}, -2, 2, False),
        ("leduc_poker", {}, -13, 13, False),
    ],
)
def test_a_game_tells_the_range_of_its_returns_and_whether_they_say_more_than_who_won(
    env_id: str, kwargs: dict, low: float, high: float, win_draw_loss: bool
) -> None:
    spec = make(EnvConfig(env_id, kwargs), num_envs=1).spec
    assert spec.return_range == (low, high)
    assert spec.win_draw_loss is win_draw_loss


def test_partners_who_do_not_earn_alike_play_for_more_than_a_win() -> None:
    one_stake = TeamRockPaperScissors(num_envs=1).payoffs
    assert is_win_draw_loss(one_stake, (0, 1, 0, 1)) and is_win_draw_loss(one_stake[..., ::-1], (5, 2, 5, 2))
    assert not is_win_draw_loss(one_stake, (0, 0, 1, 1))
    assert not is_win_draw_loss(one_stake, (0, 1, 2, 3))


def test_each_of_nine_choices_beats_four_and_loses_to_four() -> None:
    table = CyclicGame(num_envs=1).payoffs[..., 0]
    assert table.shape == (9, 9)
    assert ((table == 1).sum(axis=1) == 4).all()
    assert ((table == -1).sum(axis=1) == 4).all()
    assert table[1, 0] == 1 and table[0, 8] == 1 and table[5, 0] == -1


def test_a_win_in_the_circle_takes_the_stake_of_the_winner() -> None:
    table = CyclicGame(num_envs=1, num_actions=3, stakes=(1, 2, 5)).payoffs[..., 0]
    assert table.tolist() == [[0, -2, 1], [2, 0, -5], [-1, 5, 0]]


def test_the_best_reply_on_the_disc_is_a_quarter_turn_ahead_on_the_rim() -> None:
    table = DiscGame(num_envs=1, points=16, rings=2).payoffs[..., 0]
    assert table.shape == (32, 32)
    assert np.allclose(table, -table.T)
    for point in range(32):
        assert table[:, point].argmax() == 16 + (point % 16 + 4) % 16
    assert np.isclose(table[16 + 4, 16], 1.0)
    assert np.isclose(table[16 + 4, 0], 0.5)  # the inner ring has half the radius


def test_the_centre_of_the_disc_neither_wins_nor_loses() -> None:
    assert not DiscGame(num_envs=1, centre=True).payoffs[0].any()


@pytest.mark.parametrize(
    ("choices", "earned"),
    [
        ((ROCK, ROCK, ROCK), (0, 0, 0)),
        ((PAPER, ROCK, ROCK), (1, -0.5, -0.5)),
        ((PAPER, PAPER, ROCK), (0.5, 0.5, -1)),
        ((ROCK, PAPER, SCISSORS), (0, 0, 0)),
    ],
)
def test_three_seats_each_meet_both_others(choices: tuple[int, ...], earned: tuple[float, ...]) -> None:
    env = ThreeSeatRockPaperScissors(num_envs=2)
    env.reset(0)
    turn = env.step(np.array([ROCK, ROCK, ROCK, *choices]))
    assert turn.returns[1].tolist() == list(earned)
    assert turn.terminated.all()
    assert env.spec.teams == (0, 1, 2)


def test_partners_earn_alike_and_play_the_sum_of_their_choices() -> None:
    env = TeamRockPaperScissors(num_envs=81)
    env.reset(0)
    assert env.spec.teams == (0, 1, 0, 1)
    choices = np.array(list(itertools.product(range(3), repeat=4)))
    returns = env.step(choices.ravel()).returns
    assert np.array_equal(returns[:, 0], returns[:, 2]) and np.array_equal(returns[:, 1], returns[:, 3])
    assert np.array_equal(returns[:, 0], -returns[:, 1])
    ahead = (choices[:, 0] + choices[:, 2] - choices[:, 1] - choices[:, 3]) % 3
    assert np.array_equal(returns[:, 0], np.array([0, 1, -1])[ahead])


def test_every_seat_sees_its_own_number() -> None:
    turn = ThreeSeatRockPaperScissors(num_envs=2).reset(0)
    assert turn.obs["seat"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CyclicGame(num_envs=1, num_actions=4), "num_actions is 4; give an odd number"),
        (lambda: CyclicGame(num_envs=1, num_actions=3, stakes=(1.0, 0.0, 1.0)), "give 3 numbers above 0"),
        (lambda: CyclicGame(num_envs=1, num_actions=3, stakes=("a", "b", "c")), "give 3 numbers above 0"),
        (lambda: DiscGame(num_envs=1, points=3.5), "2 rings of 3.5 points; give at least 1 of 3"),
        (lambda: DiscGame(num_envs=1, points=2), "2 rings of 2 points; give at least 1 of 3"),
        (lambda: NormalFormGame(env_id="x", num_envs=1, payoffs=np.zeros((2, 3, 2), np.float32)), r"expected \[A\]"),
        (lambda: NormalFormGame(env_id="x", num_envs=1, payoffs=np.full((1, 1, 2), np.nan, np.float32)), "finite"),
    ],
)
def test_a_bad_game_is_one_sentence(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(EnvError, match=words):
        make()


def test_an_illegal_choice_names_seat_and_game() -> None:
    env = ThreeSeatRockPaperScissors(num_envs=2)
    env.reset(0)
    with pytest.raises(EnvError, match="action 3 of seat 1 is illegal in game 1; legal are 0 to 2"):
        env.step(np.array([0, 0, 0, 0, 3, 0]))


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize(
    ("kwargs", "width"),
    [
        ({}, 3),  # matching pennies: who must match is told by the seat alone
        ({"payoffs": ((1, 0), (3, 2)), "second_payoffs": ((1, 3), (0, 2))}, 1),  # a dilemma, equal from both sides
        ({"payoffs": ((1, 0, 2), (3, 2, 1))}, 3),
    ],
)
def test_a_table_that_differs_by_seat_shows_the_seat(kwargs: dict, width: int, rounds: int) -> None:
    env = make(EnvConfig("matrix_game", {**kwargs, "rounds": rounds}), num_envs=2)
    history = 2 * env.spec.actions.num_actions if rounds > 1 else 0
    for turn in (env.reset(0), env.step(np.array([0, 1, 1, 1]))):
        state = turn.obs["state"]
        assert state.shape == (4, width + history) == (4, *env.spec.observations["state"].shape)
        assert width == 1 or np.array_equal(state[:, -2:], np.eye(2)[[0, 1, 0, 1]])
