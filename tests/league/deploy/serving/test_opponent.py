"""A policy as an opponent: Gymnasium's own checks, seats, seeds and rewards, and loops of PettingZoo."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

import league
from league.deploy.serving.opponent import PolicyOpponent
from league.deploy.serving.served_policy import ServedPolicy
from league.envs.adapters.as_pettingzoo import as_pettingzoo
from league.envs.adapters.single_seat import SingleSeatEnv
from league.envs.protocol import EnvConfig, EnvError
from league.policies.loading import PolicyMismatch
from tests.league.deploy.serving.test_serving import loaded
from tests.league.judge.matches.eval_runs import FOUR, TINY_LSTM, MadeRun, constant_network, network_of, scaled


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Connect Four: main-0-s0 has a memory that decides, main-0-s1 always plays column 6."""
    made = MadeRun(tmp_path_factory.mktemp("opponent") / "run", env=FOUR, network=TINY_LSTM)
    made.snapshot("main-0", scaled(network_of(made.config, seed=1)))
    made.snapshot("main-0", constant_network(made.config, action=6), version=3)
    return made.close()


class FirstLegal:
    """Plays the first legal action, and remembers who was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def reset(self, seed: int | None = None) -> None:
        self.asked.clear()

    def act(self, observation: Mapping[str, NDArray[Any]], mask: NDArray[np.bool_] | None, *, seat: int) -> int:
        self.asked.append(seat)
        return 0 if mask is None else int(mask.argmax())


def record(env: SingleSeatEnv, *, seed: int, games: int = 2) -> list[Any]:
    """What a seeded learner sees, is paid and is told over some games."""
    rng, found = np.random.default_rng(seed), []
    shown, info = env.reset(seed=seed)
    while games:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        found.append((shown.tobytes(), info["seat"], action))
        shown, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            found.append((shown.tobytes(), reward))
            shown, info = env.reset()
            games -= 1
    return found


def test_gymnasiums_own_check_passes(run: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(render|spec|unbound|infinity).*")
        check_env(league.as_opponent(f"{run}:main-0-s0", env="connect_four"), skip_render_check=True)
        for game in ("rock_paper_scissors", "othello", "leduc_poker"):
            check_env(SingleSeatEnv(EnvConfig(game), FirstLegal(), illegal="random"), skip_render_check=True)


def test_equal_seeds_give_equal_games_and_others_do_not(run: Path) -> None:
    env = league.as_opponent(f"{run}:main-0-s0", env=FOUR)
    assert record(env, seed=3) == record(env, seed=3) != record(env, seed=4)


def test_seats_alternate_are_drawn_or_stay() -> None:
    def seats(seat: str | int) -> list[str]:
        env = SingleSeatEnv(FOUR, FirstLegal(), seat=seat)
        return [env.reset(seed=0 if game == 0 else None)[1]["seat"] for game in range(12)]

    first, second = seats("alternate")[:2]
    assert seats("alternate") == [first, second] * 6
    assert set(seats(1)) == set(seats(second)) == {second}
    with SingleSeatEnv(FOUR, FirstLegal(), seat="alternate") as env:
        assert [env.reset(seed=seed)[1]["seat"] for seed in range(4)] == [first, second] * 2
    assert set(seats("random")) == {first, second} and seats("random") != seats("alternate")
    with pytest.raises(EnvError, match="no seat 'north'"):
        seats("north")


def test_every_seat_has_a_memory_of_its_own() -> None:
    boards = [np.zeros((2, 6, 7), np.bool_), np.eye(7, dtype=np.bool_)[:6][None].repeat(2, axis=0)]
    policy = loaded(1)
    opponent = PolicyOpponent(ServedPolicy(policy, greedy=True))
    for _ in range(2):  # and none from one game to the next
        opponent.reset(seed=0)
        cores = [policy.network.initial_core(1) for _ in boards]
        for _ in range(4):
            for seat, board in enumerate(boards):
                opponent.act(board, seat=seat)
                with torch.inference_mode():
                    step = policy.network.step({"board": torch.from_numpy(board[None])}, core=cores[seat])
                cores[seat] = step.core
                np.testing.assert_allclose(opponent._states[seat].core, step.core[0].numpy(), atol=1e-6)
        assert not torch.allclose(cores[0], cores[1])


def test_a_seat_has_one_memory_by_its_name_and_by_its_number() -> None:
    board = np.eye(7, dtype=np.bool_)[:6][None].repeat(2, axis=0)
    named, mixed = (PolicyOpponent(ServedPolicy(loaded(1), greedy=True)) for _ in range(2))
    for seat in ("second", 1, "second"):
        named.act(board, seat="second")
        mixed.act(board, seat=seat)
    (known,), (found,) = named._states.values(), mixed._states.values()
    assert found == known


def test_the_policy_sees_the_board_from_its_own_seat(run: Path) -> None:
    env = league.as_opponent(f"{run}:main-0-s0", env=FOUR, seat=0, greedy=True)
    alone = league.load_policy(run, "main-0-s0", greedy=True)
    alone.reset()
    shown, _ = env.reset(seed=1)
    for action in (0, 1, 2):
        before = shown
        shown, _, ended, _, _ = env.step(action)
        assert not ended
        theirs = np.stack([before[1], before[0]])  # from the other side, with the stone just placed
        theirs[1, 5 - int(before[:, :, action].sum()), action] = 1
        assert int(np.argwhere(shown[1] - before[1])[0][1]) == alone.act({"board": theirs})


def test_rewards_are_those_of_the_learning_seat() -> None:
    for seat in (0, 1):
        env = SingleSeatEnv(FOUR, FirstLegal(), seat=seat)
        env.reset(seed=0)
        rewards, ended = [], False
        while not ended:  # the opponent fills column 0 and loses to a row of column 3
            _, reward, ended, _, _ = env.step(3)
            rewards.append(reward)
        assert rewards == [0.0, 0.0, 0.0, 1.0] if seat == 0 else rewards[-1] == -1.0
        with pytest.raises(EnvError, match="call reset"):
            env.step(3)


def test_the_opponent_plays_every_other_seat_of_a_larger_or_simultaneous_game() -> None:
    several = FirstLegal()
    env = SingleSeatEnv(EnvConfig("openspiel:kuhn_poker(players=3)"), several, seat=1)
    env.reset(seed=0)
    assert several.asked == [0]
    env.step(0)
    assert several.asked == [0, 2]
    at_once = FirstLegal()
    env = SingleSeatEnv(EnvConfig("rock_paper_scissors"), at_once, seat=0)
    env.reset(seed=0)
    assert env.step(1)[1] == 1.0 and at_once.asked == [1]


def test_an_illegal_action_is_refused_or_replaced() -> None:
    env = SingleSeatEnv(FOUR, FirstLegal(), seat=0)
    env.reset(seed=0)
    with pytest.raises(EnvError, match="action 9 is illegal"):
        env.step(9)
    assert env.action_masks().all()
    env = SingleSeatEnv(FOUR, FirstLegal(), seat=0, illegal="random")
    env.reset(seed=0)
    assert env.step(9)[4]["illegal"] is True


def test_a_loop_of_pettingzoo_plays_to_the_end(run: Path) -> None:
    opponent = league.as_opponent(f"{run}:main-0-s0")
    env = as_pettingzoo(FOUR)
    opponent.reset(seed=0)
    env.reset(seed=0)
    moves = 0
    for agent in env.agent_iter():  # type: ignore[union-attr]
        observation, _, terminated, truncated, _ = env.last()  # type: ignore[union-attr]
        over = terminated or truncated
        env.step(None if over else opponent.act(observation, observation["action_mask"], seat=agent))
        moves += not over
    assert moves >= 7


def test_a_policy_of_another_game_is_refused(run: Path) -> None:
    with pytest.raises(PolicyMismatch):
        league.as_opponent(run, env="tic_tac_toe")
    with pytest.raises(EnvError, match="one seat"):
        SingleSeatEnv(EnvConfig("gymnasium:CartPole-v1"), FirstLegal())
