"""PettingZoo's own API tests on every built-in game."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from league.envs.adapters.as_pettingzoo import AecGame, ParallelGame, as_pettingzoo
from league.envs.adapters.pettingzoo import AecEnv, ParallelEnv
from league.envs.conformance import differs
from league.envs.games.poker import PokerGame
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import BUILT_IN, make


@pytest.mark.parametrize("env_id", BUILT_IN)
def test_pettingzoos_api_tests_pass(env_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    make_one = functools.partial(as_pettingzoo, EnvConfig(env_id))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on names of seats
        if isinstance(make_one(), AecGame):
            api_test(make_one(), num_cycles=100)
            seed_test(make_one, num_cycles=60)
        else:
            parallel_api_test(make_one(), num_cycles=100)
            parallel_seed_test(make_one, num_cycles=60)


# Without the mask probe: its masks follow the number of the episode, which each reset of PettingZoo's sets back; and
# without the probe of sub-actions, which has its own test.
@pytest.mark.parametrize("env_id", sorted(set(BUILT_IN) - {"probe_mask", "probe_sub_actions"}))
def test_there_and_back_is_the_same_game(env_id: str) -> None:
    """A game of ours exposed as PettingZoo and adapted back pays what it pays."""
    ours = make(EnvConfig(env_id), num_envs=1)
    exposed = as_pettingzoo(EnvConfig(env_id))
    adapter = ParallelEnv if isinstance(exposed, ParallelGame) else AecEnv
    back = adapter.of(lambda: exposed, env_id=env_id, num_envs=1)
    left, right, rng = ours.reset(0), back.reset(0), np.random.default_rng(0)
    if isinstance(ours, PokerGame):
        left = ours.load(exposed._game.env.save())  # type: ignore[attr-defined]
    for _ in range(60):
        assert not differs(left, right, only=("seat", "rewards", "terminated", "truncated"))
        np.testing.assert_allclose(left.returns, right.returns, rtol=0, atol=1e-6)  # sums of one order or another
        assert right.action_mask is not None
        if isinstance(ours, PokerGame) and left.ended.any():  # PettingZoo deals from the seed of each reset: deal alike
            left = ours.load(exposed._game.env.save())  # type: ignore[attr-defined]
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in right.action_mask])
        left, right = ours.step(actions), back.step(actions)


def test_the_end_of_a_game_does_not_show_the_next_one() -> None:
    env = as_pettingzoo(EnvConfig("probe_turns", {"episode_length": 2, "truncate": True}))
    env.reset(seed=0)
    env.step(1)
    env.step(2)
    assert env.truncations == {"seat_0": True, "seat_1": True}
    assert env.observe("seat_0")["observation"]["counter"].tolist() == [0, 2, 0]
    assert not env.observe("seat_0")["action_mask"].any()


def test_box_games_are_refused() -> None:
    with pytest.raises(EnvError, match="numbered actions"):
        as_pettingzoo(EnvConfig("gymnasium:Pendulum-v1"))


class Nameless(TicTacToe):
    """A game whose author has named no seats."""

    def __init__(self, *, num_envs: int) -> None:
        super().__init__(num_envs=num_envs)
        self.spec = replace(self.spec, seat_names=())


def test_seats_without_names_are_numbered() -> None:
    env = as_pettingzoo(EnvConfig(f"{__name__}:Nameless"))
    env.reset(seed=0)
    assert env.agents == ["seat_0", "seat_1"]
    env.step(4)
    assert env.agent_selection == "seat_1"
