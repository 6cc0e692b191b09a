"""Matrix games: who earns what, once and repeatedly."""

from __future__ import annotations

import numpy as np
import pytest

from league.envs.games.matrix import MatrixGame, RepeatedRockPaperScissors, RockPaperScissors
from league.envs.protocol import EnvError

ROCK, PAPER, SCISSORS = 0, 1, 2


@pytest.mark.parametrize(
    ("row", "column", "gain"),
    [
        (ROCK, ROCK, 0),
        (ROCK, SCISSORS, 2),
        (SCISSORS, ROCK, -2),
        (PAPER, ROCK, 3),
        (ROCK, PAPER, -3),
        (SCISSORS, PAPER, 5),
        (PAPER, SCISSORS, -5),
    ],
)
def test_the_winner_takes_the_stake_of_its_own_choice(row: int, column: int, gain: float) -> None:
    env = RockPaperScissors(num_envs=2, stakes=(2, 3, 5))
    env.reset(0)
    turn = env.step(np.array([row, column, ROCK, ROCK]))
    assert turn.rewards.tolist() == [[gain, -gain], [0, 0]]
    assert turn.returns.tolist() == turn.rewards.tolist()
    assert turn.terminated.all()


def test_both_seats_act_in_every_turn() -> None:
    turn = RockPaperScissors(num_envs=3).reset(0)
    assert turn.env_index.tolist() == [0, 0, 1, 1, 2, 2]
    assert turn.seat.tolist() == [0, 1] * 3
    assert turn.obs["state"].tolist() == [[1.0]] * 6


def test_one_table_is_zero_sum_and_two_are_not() -> None:
    alone = MatrixGame(num_envs=1, payoffs=[[1, 2], [3, 4]])
    alone.reset(0)
    assert alone.step(np.array([1, 0])).rewards.tolist() == [[3, -3]]
    dilemma = MatrixGame(num_envs=1, payoffs=[[-1, -3], [0, -2]], second_payoffs=[[-1, 0], [-3, -2]])
    dilemma.reset(0)
    assert dilemma.step(np.array([0, 1])).rewards.tolist() == [[-3, 0]]


def test_a_seat_with_fewer_actions_gets_a_mask() -> None:
    env = MatrixGame(num_envs=1, payoffs=[[1, 2, 3], [4, 5, 6]])
    turn = env.reset(0)
    assert turn.action_mask is not None
    assert turn.action_mask.tolist() == [[True, True, False], [True, True, True]]
    with pytest.raises(EnvError, match="action 2 of seat 0 is illegal in game 0; legal are 0 to 1"):
        env.step(np.array([2, 0]))
    assert env.step(np.array([1, 2])).rewards.tolist() == [[6, -6]]


def test_repeated_play_shows_the_last_round_and_pays_each() -> None:
    env = RepeatedRockPaperScissors(num_envs=1, rounds=3)
    turn = env.reset(0)
    assert not turn.obs["state"].any()
    turn = env.step(np.array([PAPER, ROCK]))
    third = np.float32(1 / 3)
    assert turn.obs["state"].tolist() == [[third, 0, 1, 0, 1, 0, 0], [third, 1, 0, 0, 0, 1, 0]]
    assert turn.rewards.tolist() == [[1, -1]]
    assert not turn.ended.any()
    env.step(np.array([PAPER, SCISSORS]))
    turn = env.step(np.array([PAPER, ROCK]))
    assert turn.terminated.all()
    assert turn.rewards.tolist() == [[1, -1]]
    assert turn.returns.tolist() == [[1, -1]]
    assert not turn.obs["state"].any()
    for _ in range(3):
        turn = env.step(np.array([PAPER, ROCK]))
    assert turn.returns.tolist() == [[3, -3]]


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"payoffs": [[1, 2], [3]]}, "rectangular"),
        ({"payoffs": [[float("nan")]]}, "finite"),
        ({"payoffs": [[1, 2]], "second_payoffs": [[1]]}, "make them equal"),
        ({"payoffs": [[1e30]]}, "at most 1,000,000,000,000,000"),
        ({"rounds": 0}, "at least 1"),
        ({"rounds": float("nan")}, "rounds nan; both must be whole numbers of at least 1"),
        ({"rounds": 2.5}, "rounds 2.5; both must be whole"),
        ({"rounds": "many"}, "rounds 'many'; both must be whole"),
    ],
)
def test_a_bad_table_is_one_sentence(kwargs: dict[str, object], words: str) -> None:
    with pytest.raises(EnvError, match=words):
        MatrixGame(num_envs=1, **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize("stakes", [(1, 2, 0), (1, 2), 5, ("a", "b", "c"), (1, 2, float("inf")), (1, 2, 1e30), None])
def test_stakes_must_be_three_positive_numbers(stakes: object) -> None:
    with pytest.raises(EnvError, match="three numbers above 0"):
        RockPaperScissors(num_envs=1, stakes=stakes)  # type: ignore[arg-type]


def test_a_game_in_which_nothing_is_at_stake_has_no_winner() -> None:
    assert not MatrixGame(num_envs=1, payoffs=[[0, 0], [0, 0]]).spec.win_draw_loss
