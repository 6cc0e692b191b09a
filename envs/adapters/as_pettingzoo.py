"""Built-in games as PettingZoo envs: AEC if seats act in turn, parallel if all act at once.

Every observation is a dict of "observation" (an array, or a dict of arrays where the game has several fields; bool
becomes int8) and "action_mask" (int8 [A], zeros for a seat that does not act). A waiting seat keeps its
last observation. Sub-actions become MultiDiscrete, for which PettingZoo has no mask: the dict then has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo import ParallelEnv as PettingZooParallelEnv

from league.envs.adapters.checks.masks import MASK
from league.envs.closing import closed_on_error
from league.envs.protocol import ArraySpec, BatchedEnv, EnvConfig, EnvError, EnvSpec, Turn
from league.envs.registry import make


def as_pettingzoo(config: EnvConfig) -> AecGame | ParallelGame:
    """One game of `config` as a PettingZoo env.

    Raises:
      EnvError: the game takes a box, masks sub-actions, or cannot be made.
    """
    env = make(config, num_envs=1)
    with closed_on_error([env]):
        if env.spec.actions.kind == "box":
            raise EnvError(f"{config.id}: only games with numbered actions can be exposed, this one takes a box")
        if env.spec.has_mask and env.spec.actions.kind != "categorical":
            raise EnvError(f"{config.id}: PettingZoo has no masks for MultiDiscrete actions, which this game needs")
        return ParallelGame(env) if env.reset(0).seat.size > 1 else AecGame(env)


class Exposed:
    """One built-in game for the two PettingZoo classes below: spaces, and each seat's last observation and reward."""

    def __init__(self, env: BatchedEnv) -> None:
        self.env = env
        self.seats = list(env.spec.seat_names) or [f"seat_{seat}" for seat in range(env.spec.num_seats)]
        self.observation_spaces: dict[str, Any] = {seat: _observation_space(env.spec) for seat in self.seats}
        self.action_spaces: dict[str, Any] = {seat: _action_space(env.spec) for seat in self.seats}
        self._rng = np.random.default_rng()
        self._seen: list[dict[str, Any]] = []
        self.acting: list[int] = []
        self._waiting = np.zeros(len(self.seats))

    def reset(self, seed: int | None) -> None:
        """Restart; without a seed every game differs from the last."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._seen = [_blank(self.env.spec) for _ in self.seats]
        self._waiting[:] = 0
        self._look(self.env.reset(int(self._rng.integers(2**31))))

    def step(self, actions: list[Any]) -> tuple[np.ndarray[Any, Any], bool, bool]:
        """Apply actions for the acting seats; returns rewards [S] of this step, terminated, truncated."""
        self._waiting[self.acting] = 0
        turn = self.env.step(np.array(actions, np.int64))
        rewards = turn.rewards[0] - self._waiting
        self._waiting = turn.rewards[0].astype(np.float64)
        if turn.ended[0]:  # the turn already shows the next episode, which must stay hidden here
            self._forbid_all()
            if turn.final is not None:
                for row, seat in enumerate(turn.final.seat):
                    self._seen[seat]["observation"] = _observation(self.env.spec, turn.final.obs, row)
        else:
            self._look(turn)
        return rewards, bool(turn.terminated[0]), bool(turn.truncated[0])

    def observe(self, seat: int) -> dict[str, Any]:
        """The observation of a seat."""
        return dict(self._seen[seat])

    def _look(self, turn: Turn) -> None:
        self.acting = turn.seat.tolist()
        self._forbid_all()
        for row, seat in enumerate(self.acting):
            self._seen[seat]["observation"] = _observation(self.env.spec, turn.obs, row)
            if MASK in self._seen[seat]:
                everything = np.ones(self.env.spec.actions.num_actions, np.int8)
                legal = everything if turn.action_mask is None else turn.action_mask[row].astype(np.int8)
                self._seen[seat][MASK] = legal

    def _forbid_all(self) -> None:
        """Mask all actions of every seat until its next turn shows the legal ones."""
        for seen in self._seen:
            if MASK in seen:
                seen[MASK] = np.zeros_like(seen[MASK])


class AecGame(AECEnv):  # type: ignore[misc]
    """A game in which seats act in turn."""

    def __init__(self, env: BatchedEnv) -> None:
        super().__init__()
        self._game = Exposed(env)
        self.metadata = {"name": env.spec.env_id, "render_modes": [], "is_parallelizable": False}
        self.possible_agents = list(self._game.seats)
        self.observation_spaces, self.action_spaces = self._game.observation_spaces, self._game.action_spaces
        self.render_mode = None

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """See PettingZoo; there are no options."""
        self._game.reset(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[self._game.acting[0]]

    def observe(self, agent: str) -> dict[str, Any]:
        return self._game.observe(self.possible_agents.index(agent))

    def step(self, action: Any) -> None:
        """See PettingZoo.

        Raises:
          EnvError: the action is illegal.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise EnvError(f"{self.metadata['name']}: {agent} must act, None is for seats out of the game")
        self._cumulative_rewards[agent] = 0.0
        rewards, terminated, truncated = self._game.step([action])
        self.rewards = {name: float(rewards[seat]) for seat, name in enumerate(self.possible_agents)}
        if terminated or truncated:
            self.terminations = dict.fromkeys(self.agents, terminated)
            self.truncations = dict.fromkeys(self.agents, truncated)
            self.agent_selection = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        else:
            self.agent_selection = self.possible_agents[self._game.acting[0]]
        self._accumulate_rewards()

    def close(self) -> None:
        self._game.env.close()


class ParallelGame(PettingZooParallelEnv):  # type: ignore[misc]
    """A game in which all seats act at once."""

    def __init__(self, env: BatchedEnv) -> None:
        self._game = Exposed(env)
        self.metadata = {"name": env.spec.env_id, "render_modes": []}
        self.possible_agents = list(self._game.seats)
        self.agents: list[str] = []
        self.observation_spaces, self.action_spaces = self._game.observation_spaces, self._game.action_spaces
        self.render_mode = None

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """See PettingZoo; there are no options."""
        self._game.reset(seed)
        self.agents = list(self.possible_agents)
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See PettingZoo.

        Raises:
          EnvError: an action is illegal.
        """
        acted = self.agents
        acting = [self.possible_agents[seat] for seat in self._game.acting]
        rewards, terminated, truncated = self._game.step([actions[agent] for agent in acting])
        if terminated or truncated:
            self.agents = []
        return (
            {agent: self._game.observe(self.possible_agents.index(agent)) for agent in acted},
            {agent: float(rewards[self.possible_agents.index(agent)]) for agent in acted},
            dict.fromkeys(acted, terminated),
            dict.fromkeys(acted, truncated),
            {agent: {} for agent in acted},
        )

    def close(self) -> None:
        self._game.env.close()

    def _observations(self) -> dict[str, Any]:
        return {agent: self._game.observe(seat) for seat, agent in enumerate(self.possible_agents)}


def _observation_space(spec: EnvSpec) -> spaces.Dict:
    fields = {name: field_space(field) for name, field in spec.observations.items()}
    observation = next(iter(fields.values())) if len(fields) == 1 else spaces.Dict(fields)
    if spec.actions.kind != "categorical":
        return spaces.Dict({"observation": observation})
    mask = spaces.Box(0, 1, (spec.actions.num_actions,), np.int8)
    return spaces.Dict({"observation": observation, MASK: mask})


def _action_space(spec: EnvSpec) -> Any:
    if spec.actions.kind == "multi_categorical":
        return spaces.MultiDiscrete(spec.actions.nvec)
    return spaces.Discrete(spec.actions.num_actions)


def field_space(field: ArraySpec) -> spaces.Box:
    """The space of an observation field; bool becomes int8."""
    if field.dtype == "bool":
        return spaces.Box(0, 1, field.shape, np.int8)
    dtype = np.dtype(field.dtype)
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return spaces.Box(low, high, field.shape, dtype.type)


def _observation(spec: EnvSpec, obs: Any, row: int) -> Any:
    fields = {
        name: obs[name][row].astype(np.int8 if field.dtype == "bool" else field.dtype)
        for name, field in spec.observations.items()
    }
    return next(iter(fields.values())) if len(fields) == 1 else fields


def _blank(spec: EnvSpec) -> dict[str, Any]:
    zeros = {name: np.zeros((1, *field.shape), field.dtype) for name, field in spec.observations.items()}
    blank = {"observation": _observation(spec, zeros, 0)}
    if spec.actions.kind == "categorical":
        blank[MASK] = np.zeros(spec.actions.num_actions, np.int8)
    return blank
