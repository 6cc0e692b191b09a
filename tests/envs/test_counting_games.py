"""The probe games do what their counters say: the tables here are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from league.envs.protocol import EnvError
from tests.envs.counting_games import LastMoveProbe, MaskProbe, SimultaneousProbe, TurnProbe, is_legal


def test_counters_show_episode_step_and_seat() -> None:
    env = TurnProbe(num_envs=2, episode_length=[2, 3])
    turn = env.reset(0)
    seen = [turn.obs["counter"].tolist()]
    for _ in range(5):
        turn = env.step(np.zeros(2, np.int64))
        seen.append(turn.obs["counter"].tolist())
    # Game 0 has episodes of 2, 3, 2 ... steps, game 1 of 3, 2, 3 ...
    assert seen == [
        [[0, 0, 0], [0, 0, 0]],
        [[0, 1, 1], [0, 1, 1]],
        [[1, 0, 0], [0, 2, 0]],
        [[1, 1, 1], [1, 0, 0]],
        [[1, 2, 0], [1, 1, 1]],
        [[2, 0, 0], [2, 0, 0]],
    ]


def test_rewards_wait_for_the_seats_own_turn() -> None:
    env = TurnProbe(num_envs=1, num_seats=3, episode_length=5)
    env.reset(0)
    rewards = [env.step(np.array([0])).rewards[0].tolist() for _ in range(5)]
    assert rewards == [
        [16, 17, 18],  # seat 0 acted
        [16 + 32, 33, 18 + 34],  # seat 1 acted: its 17 were paid with its turn, seats 0 and 2 wait on
        [48 + 48, 33 + 49, 50],  # seat 2 acted
        [64, 82 + 65, 50 + 66],  # seat 0 acted again
        [64 + 80, 81, 116 + 82],  # seat 1 acted, and the episode ended: what everybody still had to get
    ]


def test_returns_are_all_that_was_earned() -> None:
    env = TurnProbe(num_envs=1, num_seats=2, episode_length=3)
    env.reset(0)
    for _ in range(2):
        assert not env.step(np.array([0])).returns.any()
    turn = env.step(np.array([0]))
    assert turn.returns.tolist() == [[16 + 32 + 48, 17 + 33 + 49]]
    assert turn.terminated.tolist() == [True]
    assert turn.final is None


def test_truncation_gives_every_seat_its_true_last_observation() -> None:
    env = TurnProbe(num_envs=2, episode_length=[2, 3], truncate=True)
    env.reset(0)
    env.step(np.array([3, 2]))
    turn = env.step(np.array([1, 0]))
    assert turn.truncated.tolist() == [True, False]
    assert not turn.terminated.any()
    assert turn.final is not None
    assert turn.final.env_index.tolist() == [0, 0]
    assert turn.final.seat.tolist() == [0, 1]
    assert turn.final.obs["counter"].tolist() == [[0, 2, 0], [0, 2, 1]]
    assert turn.final.obs["echo"].tolist() == [[3], [1]]
    assert turn.obs["counter"][0].tolist() == [1, 0, 0]
    assert turn.obs["echo"][0].tolist() == [-1]


def test_simultaneous_seats_act_and_are_paid_together() -> None:
    env = SimultaneousProbe(num_envs=2, num_seats=2, episode_length=2)
    turn = env.reset(0)
    assert turn.env_index.tolist() == [0, 0, 1, 1]
    turn = env.step(np.array([0, 1, 2, 3]))
    assert turn.rewards.tolist() == [[16, 17], [16, 17]]
    assert turn.obs["echo"].ravel().tolist() == [0, 1, 2, 3]
    turn = env.step(np.array([0, 0, 0, 0]))
    assert turn.rewards.tolist() == [[32, 33], [32, 33]]
    assert turn.returns.tolist() == [[48, 50], [48, 50]]


def test_masks_follow_the_rule_and_bite() -> None:
    env = MaskProbe(num_envs=1, episode_length=3)
    turn = env.reset(0)
    for episode, step in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]:
        seat = step % 2
        legal = [is_legal(action, episode=episode, step=step, seat=seat) for action in range(4)]
        assert turn.action_mask is not None
        assert turn.action_mask.tolist() == [legal]
        with pytest.raises(EnvError, match="illegal"):
            env.step(np.array([legal.index(False)]))
        turn = env.step(np.array([legal.index(True)]))


@pytest.mark.parametrize(("episode_length", "winner"), [(3, 0), (4, 1)])
def test_the_last_move_costs_the_waiting_seat(episode_length: int, winner: int) -> None:
    env = LastMoveProbe(num_envs=1, episode_length=episode_length)
    env.reset(0)
    for _ in range(episode_length - 1):
        assert not env.step(np.array([0])).rewards.any()
    turn = env.step(np.array([0]))
    assert turn.rewards[0, winner] == 1
    assert turn.rewards[0, 1 - winner] == -1


def test_a_fork_continues_as_its_origin_does() -> None:
    env = TurnProbe(num_envs=3, num_seats=3, episode_length=[4, 5, 6])
    env.reset(0)
    for _ in range(7):
        turn = env.step(np.array([1, 2, 3]))
    forked, shown = env.fork(np.array([2, 0]))
    assert np.array_equal(shown.rewards, np.where(turn.ended[[2, 0], None], 0, turn.rewards[[2, 0]]))
    for _ in range(12):
        expected, turn = env.step(np.array([0, 1, 2])), forked.step(np.array([2, 0]))
        for name in ("counter", "echo"):
            assert np.array_equal(turn.obs[name], expected.obs[name][[2, 0]])
        assert np.array_equal(turn.rewards, expected.rewards[[2, 0]])
        assert np.array_equal(turn.ended, expected.ended[[2, 0]])


def test_bad_lengths_are_refused() -> None:
    with pytest.raises(EnvError, match="whole number above 0"):
        TurnProbe(num_envs=1, episode_length=[3, 0])
