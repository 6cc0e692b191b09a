"""The rate at which an external env steps by itself, in a loop of its own kind: the measure of an adapter's overhead.

A loop is played once at random and then again with the same seeds and actions, and only the second time is measured:
the choice of actions costs nothing in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from league.envs.adapters.checks.masks import MaskMethod, mask_of, mask_path
from league.envs.adapters.external import ExternalEnv
from league.envs.adapters.gymnasium import SEAT, GymnasiumEnv
from league.envs.adapters.pettingzoo import AecEnv
from league.envs.adapters.spaces import action_code, flat_mask
from league.envs.closing import closed_on_error
from league.envs.protocol import EnvError

Clock = Callable[[], float]

Chooser = Callable[[Any, Any, Any], Any]
"""The action of a seat as its env takes it, by the seat, what the env shows it, and its mask (None for none)."""


@dataclass
class Episode:
    """A seed and the actions that followed; decisions: of living seats."""

    seed: int
    actions: list[Any] = field(default_factory=list)
    decisions: int = 0


class Loop(Protocol):
    """One env in a loop of its kind."""

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        ...

    def choose(self) -> tuple[Any, int]:
        """The chosen actions for `step`, and how many seats decide; (None, 0) at the end of the episode."""
        ...

    def step(self, actions: Any) -> None:
        """Everything a user's loop calls to go one step on and to see what came of it."""
        ...


def bare_rate(env: object, *, seconds: float, clock: Clock = time.process_time) -> float | None:
    """Decisions a second of one game of `env` without its adapter; None for an env that is no external one.

    Args:
      seconds: of play, in each of the two passes.
    Raises:
      EnvError: it raised, as an env may do only in the calls of that loop.
    """
    if not isinstance(env, ExternalEnv) or env.make_bare is None:
        return None
    try:
        raw = env.make_bare()
        loop = loop_over(env, raw, random_legal(raw))
        with closed_on_error([raw]):
            rate = loop_rate(loop, seconds=seconds, clock=clock)
        raw.close()
    except Exception as error:  # a boundary: the code of an env of the user's own
        what = f"{type(error).__name__}: {error}"
        raise EnvError(f"{env.spec.env_id}: played in the usual loop of its kind, it raised {what}") from error
    return rate


def loop_over(env: ExternalEnv, raw: Any, chooser: Chooser) -> Loop:
    """The loop of its kind over a bare game of an env."""
    if isinstance(env, GymnasiumEnv):
        return GymnasiumLoop(raw, chooser)
    return AecLoop(raw, chooser) if isinstance(env, AecEnv) else ParallelLoop(raw, chooser)


def random_legal(raw: Any) -> Chooser:
    """Chooses at random in a bare game, legally where there is a mask."""
    rng = np.random.default_rng(0)

    def choose(seat: Any, observation: Any, mask: Any) -> Any:
        space = raw.action_space
        return _draw(space(seat) if callable(space) else space, mask, rng)

    return choose


def loop_rate(loop: Loop, *, seconds: float, clock: Clock = time.process_time) -> float:
    """Decisions a second of a loop."""
    episodes: list[Episode] = []
    stop = clock() + seconds
    while not episodes or clock() < stop:
        episode = Episode(len(episodes))
        loop.reset(episode.seed)
        while True:
            actions, decisions = loop.choose()
            if actions is None or (episode.actions and clock() >= stop):
                break
            loop.step(actions)
            episode.actions.append(actions)
            episode.decisions += decisions
        episodes.append(episode)
    began = clock()
    for episode in episodes:
        loop.reset(episode.seed)
        for actions in episode.actions:
            loop.step(actions)
    return sum(episode.decisions for episode in episodes) / max(clock() - began, 1e-9)


NO_ACTION = object()
"""Answered for a dead agent, which acts with None."""


class AecLoop:
    """PettingZoo's loop over the agents of an AEC env: `last`, then `step`."""

    def __init__(self, env: Any, chooser: Chooser) -> None:
        self._env = env
        self._chooser = chooser

    def reset(self, seed: int) -> None:
        self._env.reset(seed=seed)

    def choose(self) -> tuple[Any, int]:
        env = self._env
        if not env.agents:
            return None, 0
        agent = env.agent_selection
        if env.terminations[agent] or env.truncations[agent]:
            return NO_ACTION, 0
        observation = env.observe(agent)
        return self._chooser(agent, observation, _mask_of(env, agent, observation, env.infos.get(agent))), 1

    def step(self, actions: Any) -> None:
        self._env.last()
        self._env.step(None if actions is NO_ACTION else actions)


class ParallelLoop:
    """PettingZoo's loop over the steps of a parallel env."""

    def __init__(self, env: Any, chooser: Chooser) -> None:
        self._env = env
        self._chooser = chooser
        self._seen: Any = {}
        self._infos: Any = {}

    def reset(self, seed: int) -> None:
        self._seen, self._infos = self._env.reset(seed=seed)

    def choose(self) -> tuple[Any, int]:
        agents = self._env.agents
        if not agents:
            return None, 0
        shown = {agent: self._seen.get(agent) for agent in agents}
        return {
            agent: self._chooser(
                agent, observation, _mask_of(self._env, agent, observation, (self._infos or {}).get(agent))
            )
            for agent, observation in shown.items()
        }, len(agents)

    def step(self, actions: Any) -> None:
        self._seen, _, _, _, self._infos = self._env.step(actions)


class GymnasiumLoop:
    """Gymnasium's loop over the steps of an env."""

    def __init__(self, env: Any, chooser: Chooser) -> None:
        self._env = env
        self._chooser = chooser
        self._seen: tuple[Any, Any] = (None, None)
        self._over = False

    def reset(self, seed: int) -> None:
        self._seen, self._over = self._env.reset(seed=seed), False

    def choose(self) -> tuple[Any, int]:
        return (
            (None, 0) if self._over else (self._chooser(SEAT, self._seen[0], _mask_of(self._env, SEAT, *self._seen)), 1)
        )

    def step(self, actions: Any) -> None:
        observation, _, terminated, truncated, infos = self._env.step(actions)
        self._seen, self._over = (observation, infos), terminated or truncated


def _mask_of(env: Any, agent: Any, observation: Any, infos: Any) -> Any:
    """The mask that an env gives an agent; None for the lone one of Gymnasium, and where all is legal."""
    observed, acted = env.observation_space, env.action_space
    if callable(observed):
        observed, acted = observed(agent), acted(agent)
    path = mask_path(observed, action_code(acted, env_id="bare").spec.num_actions)
    mask, method = (
        mask_of(observation, infos, path=path),
        MaskMethod.of(env, has_agents=hasattr(env, "possible_agents")),
    )
    if mask is not None or method is None:
        return mask
    agents = getattr(env, "possible_agents", [agent])
    return method(env, agent=agent, seat=agents.index(agent))


def _draw(space: Any, mask: Any, rng: np.random.Generator) -> Any:
    """A random action, legal where there is a mask."""
    if mask is not None:
        code = action_code(space, env_id="bare")
        ends = np.cumsum(code.spec.nvec or (code.spec.num_actions,))[:-1]
        drawn = [rng.choice(np.flatnonzero(part)) for part in np.split(flat_mask(mask, code), ends)]
        return code.decode(np.array(drawn) if code.spec.nvec else drawn[0])
    space.seed(int(rng.integers(2**31)))
    return space.sample()
