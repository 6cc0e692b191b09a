"""Actions of several parts: legality part by part, the toy game made of it, and the spaces of the libraries."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.test import parallel_api_test

from league.envs.adapters.as_pettingzoo import as_pettingzoo
from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.adapters.spaces import action_code
from league.envs.bots import RandomBot
from league.envs.protocol import EnvConfig, EnvError, multi_categorical
from league.envs.sub_actions import draw_sub_actions, first_sub_actions, sub_actions_are_legal
from tests.envs.oracles.raw_probes import RawSimultaneousProbe, RawSingleProbe
from tests.envs.probe_sub_actions import WANTED, SubActionsProbe

CHAINED = multi_categorical((2, 3, 2), mask_given=(-1, 0, -1))
# First part: both. Second: only 1 after 0, nothing after 1. Third: only 1.
MASK = np.array([[1, 1, 0, 1, 0, 0, 0, 0, 0, 1]], np.bool_)
LEGAL = {(0, 1, 1), (1, 0, 1)}


def test_legal_choices_depend_on_the_sub_actions_before() -> None:
    every = np.array(list(itertools.product(range(-1, 3), range(-1, 4), range(-1, 3))), np.int64)
    found = sub_actions_are_legal(CHAINED, every, mask=np.repeat(MASK, len(every), axis=0))
    assert {tuple(row) for row in every[found].tolist()} == LEGAL


def test_draws_are_legal_and_reach_everything_that_is() -> None:
    rng = np.random.default_rng(0)
    drawn = draw_sub_actions(CHAINED, 200, mask=np.repeat(MASK, 200, axis=0), rng=rng)
    assert {tuple(row) for row in drawn.tolist()} == LEGAL
    free = draw_sub_actions(CHAINED, 400, mask=None, rng=rng)
    assert len({tuple(row) for row in free.tolist()}) == 12
    assert first_sub_actions(CHAINED, 1, mask=MASK).tolist() == [[0, 1, 1]]


def test_the_probe_rewards_the_fraction_of_right_sub_actions() -> None:
    env = SubActionsProbe(num_envs=3, num_seats=2, episode_length=2)
    turn = env.reset(0)
    total = 0.0
    for step in range(4):
        shown = np.split(turn.obs[WANTED], np.cumsum(env.spec.actions.nvec)[:-1], axis=1)
        wanted = np.stack([part.argmax(axis=1) for part in shown], axis=1)
        answer = wanted.copy()
        answer[0, 1] = (answer[0, 1] + 1) % 4
        turn = env.step(answer)
        expected = np.full((3, 2), 0.5, np.float32)
        expected[0, 0] = 0.5 * 2 / 3
        np.testing.assert_allclose(turn.rewards, expected, rtol=1e-6)
        assert turn.ended.tolist() == [step % 2 == 1] * 3
        total += 1.0
    np.testing.assert_allclose(turn.returns[1:], 1.0, rtol=1e-6)


def test_what_is_wanted_is_legal_in_the_masked_probe_and_something_else_is_not() -> None:
    env, bot = SubActionsProbe(num_envs=4, masked=True), RandomBot(seed=0)
    turn, refused = env.reset(0), 0
    for _ in range(12):
        assert turn.action_mask is not None
        wanted = np.stack(
            [part.argmax(axis=1) for part in np.split(turn.obs[WANTED], np.cumsum(env.spec.actions.nvec)[:-1], axis=1)],
            axis=1,
        )
        assert sub_actions_are_legal(env.spec.actions, wanted, mask=turn.action_mask).all()
        every = np.array(list(itertools.product(*map(range, env.spec.actions.nvec))), np.int64)
        masks = np.repeat(turn.action_mask[:1], len(every), axis=0)
        refused += int((~sub_actions_are_legal(env.spec.actions, every, mask=masks)).sum())
        turn = env.step(bot.act(env, turn, np.arange(4)))
    assert refused > 0
    bad = bot.act(env, turn, np.arange(4))
    bad[2, 1] = 4
    with pytest.raises(EnvError, match="slot 2 is illegal"):
        env.step(bad)


class Pair(RawSingleProbe):
    """Three parts behind Gymnasium, [2, 3] and a row of a matrix space, counted from 5; notes what it is given."""

    action_space = spaces.MultiDiscrete([[2, 3]], start=[[5, 0]])
    mask: Any = None

    def reset(self, **_: Any) -> Any:
        observation, _ = super().reset()
        return observation, {} if self.mask is None else {"action_mask": self.mask}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.got = action
        *result, infos = super().step(0)
        return *result, infos if self.mask is None else {"action_mask": self.mask}


def test_multi_discrete_spaces_become_sub_actions_and_keep_their_starts_and_shape() -> None:
    env = GymnasiumEnv.of(Pair, env_id="pair", num_envs=2)
    assert env.spec.actions == multi_categorical((2, 3))
    turn = env.reset(0)
    env.step(np.array([[1, 2], [0, 0]]))
    assert [game.got.tolist() for game in env._games] == [[[6, 2]], [[5, 0]]]
    assert RandomBot(seed=0).act(env, turn, np.arange(2)).shape == (2, 2)
    with pytest.raises(EnvError, match=r"action \[1 3\] is illegal"):
        env.step(np.array([[1, 3], [0, 0]]))
    with pytest.raises(EnvError, match=r"expected int64 \(2, 2\)"):
        env.step(np.array([1, 0]))


@pytest.mark.parametrize("mask", [(np.array([0, 1], np.int8), np.array([1, 0, 1], np.int8)), [0, 1, 1, 0, 1]])
def test_masks_of_sub_actions_come_as_the_library_samples_them_or_side_by_side(mask: Any) -> None:
    class Masked(Pair):
        def __init__(self) -> None:
            super().__init__()
            self.mask = mask

    env = GymnasiumEnv.of(Masked, env_id="masked", num_envs=1)
    assert env.reset(0).action_mask.tolist() == [[False, True, True, False, True]]
    env.step(np.array([[1, 2]]))
    with pytest.raises(EnvError, match="illegal"):
        env.step(np.array([[1, 1]]))


def test_masks_that_do_not_fit_the_sub_actions_are_one_sentence() -> None:
    class Short(Pair):
        mask = (np.ones(2, np.int8), np.ones(2, np.int8))

    with pytest.raises(EnvError, match=r"action_mask has sub-actions of \(2, 2\) choices, the actions have \(2, 3\)"):
        GymnasiumEnv.of(Short, env_id="short", num_envs=1).reset(0)


def test_multi_binary_actions_are_sub_actions_of_two_choices() -> None:
    code = action_code(spaces.MultiBinary((2, 2)), env_id="x")
    assert code.spec == multi_categorical((2, 2, 2, 2))
    given = code.decode(np.array([1, 0, 0, 1]))
    assert given.tolist() == [[1, 0], [0, 1]] and given.dtype == np.int8


def test_parallel_seats_with_sub_actions_act_through_pettingzoo() -> None:
    class Parts(RawSimultaneousProbe):
        def action_space(self, agent: str) -> spaces.MultiDiscrete:
            return spaces.MultiDiscrete([2, 3])

        def step(self, actions: dict[str, Any]) -> Any:
            assert all(self.action_space(agent).contains(action) for agent, action in actions.items())
            return super().step({agent: 3 * action[0] + action[1] for agent, action in actions.items()})

    env = ParallelEnv.of(Parts, env_id="parts", num_envs=2)
    env.reset(0)
    turn = env.step(np.array([[1, 2], [0, 1], [1, 0], [0, 0]]))
    assert turn.obs["echo"].ravel().tolist() == [5, 1, 3, 0]


def test_games_with_sub_actions_are_exposed_to_pettingzoo_and_come_back() -> None:
    config = EnvConfig("probe_sub_actions", {"num_seats": 2, "episode_length": 6})
    parallel_api_test(as_pettingzoo(config), num_cycles=50)
    exposed = as_pettingzoo(config)
    back = ParallelEnv.of(lambda: exposed, env_id="back", num_envs=1)
    turn, ours = back.reset(0), SubActionsProbe(num_envs=1, num_seats=2, episode_length=6)
    left = ours.load(exposed._game.env.save())  # type: ignore[attr-defined]
    for _ in range(5):
        np.testing.assert_array_equal(turn.obs["observation"], left.obs[WANTED])
        actions = RandomBot(seed=1).act(ours, left, np.arange(2))
        turn, left = back.step(actions), ours.step(actions)
        np.testing.assert_allclose(turn.rewards, left.rewards)
    with pytest.raises(EnvError, match="has no masks for MultiDiscrete actions"):
        as_pettingzoo(EnvConfig("probe_sub_actions", {"masked": True}))
