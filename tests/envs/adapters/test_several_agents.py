"""Gymnasium's envs of several agents: every agent is a seat, with its own rewards and its own end."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.several_agents import SeveralAgents, SeveralAgentsEnv, has_several_agents
from league.envs.conformance import check_env
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make


class Foragers(gymnasium.Env):
    """Two agents that are paid what they choose; rewards, ends and infos as a game of that form gives them."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    n_agents = 2
    observation_space = spaces.Tuple([spaces.Box(0.0, 10.0, (2,), np.float32)] * 2)
    action_space = spaces.Tuple([spaces.Discrete(3, start=1)] * 2)

    def __init__(self, *, alone_ends: bool = False, shared: bool = False) -> None:
        self.alone_ends, self.shared, self.turn = alone_ends, shared, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.turn = 0
        return self._seen(), {"avail_actions": [[1, 1, 1], [0, 1, 1]]}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.turn += 1
        self.acted = action
        over = self.turn == 3
        ends = [self.turn >= 2, over] if self.alone_ends else over
        rewards = float(sum(action)) if self.shared else [float(number) for number in action]
        return self._seen(), rewards, ends, False, {"avail_actions": [[1, 1, 1], [0, 1, 1]]}

    def _seen(self) -> tuple[Any, ...]:
        return tuple(np.array([self.turn, seat], np.float32) for seat in range(2))


def test_every_agent_is_a_seat_with_its_own_rewards_and_mask() -> None:
    env = SeveralAgentsEnv.of(Foragers, env_id="x", num_envs=1)
    turn = env.reset(0)
    assert (env.spec.seat_names, env.spec.num_teams) == (("agent_0", "agent_1"), 2)
    np.testing.assert_array_equal(turn.action_mask, [[True, True, True], [False, True, True]])
    turn = env.step(np.array([0, 2]))
    np.testing.assert_array_equal(turn.rewards[0], [1.0, 3.0])
    np.testing.assert_array_equal(turn.obs["observation"], [[1.0, 0.0], [1.0, 1.0]])


def test_one_reward_is_everybodys_and_an_agent_may_end_before_the_others() -> None:
    shared = SeveralAgentsEnv.of(lambda: Foragers(shared=True), env_id="x", num_envs=1)
    shared.reset(0)
    np.testing.assert_array_equal(shared.step(np.array([0, 2])).rewards[0], [4.0, 4.0])
    game = SeveralAgents(Foragers(alone_ends=True))
    game.reset(seed=0)
    game.step({"agent_0": 2, "agent_1": 3})
    game.step({"agent_0": 2, "agent_1": 3})
    assert game.agents == ["agent_1"]
    seen, rewards, *_ = game.step({"agent_1": 3})
    assert (list(seen), rewards, game._game.acted) == (["agent_1"], {"agent_1": 3.0}, (1, 3))


@pytest.mark.parametrize("changes", [{}, {"shared": True}, {"alone_ends": True}])
def test_such_an_env_keeps_the_contract(changes: dict[str, Any]) -> None:
    findings = check_env(EnvConfig(f"{__name__}:Foragers", changes))
    assert [found for found in findings if found.kind == "fault"] == []


def test_by_its_id_too_every_agent_is_a_seat_and_may_be_put_into_teams() -> None:
    gymnasium.register("Foragers-v0", entry_point=Foragers)
    try:
        for teams, count in (((), 2), ((("agent_0", "agent_1"),), 1)):
            with contextlib.closing(make(EnvConfig("gymnasium:Foragers-v0", teams=teams), num_envs=1)) as env:
                assert (env.spec.num_seats, env.spec.num_teams) == (2, count)
    finally:
        del gymnasium.registry["Foragers-v0"]
    with pytest.raises(EnvError, match=r"env.teams cannot be set for a Gymnasium env"):
        make(EnvConfig("gymnasium:CartPole-v1", teams=(("player",),)), num_envs=1)


def test_tuples_of_one_agent_stay_those_of_one() -> None:
    class One(Foragers):
        n_agents = 1

        def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            seen, rewards, *rest = super().step(action)
            return seen, sum(rewards), *rest

    assert has_several_agents(Foragers()) and not has_several_agents(One())
    env = GymnasiumEnv.of(One, env_id="x", num_envs=1)
    assert (env.spec.num_seats, env.spec.actions.nvec) == (1, (3, 3))
