"""Gymnasium's envs of several agents, whose spaces are tuples with a part for each, as parallel games of PettingZoo.

The form of Foraging, RWARE, SMAClite and the like: actions and observations are tuples, rewards a list or one number
for all, and the number of agents is an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pettingzoo
from gymnasium import spaces

from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.seat_plan import ALONE, SeatPlan

COUNTS = ("n_agents", "num_agents", "n")
"""Attributes that say how many agents there are."""


def has_several_agents(game: Any) -> bool:
    """True if actions and observations are tuples of as many parts as the game says that it has agents."""
    try:
        parts = [getattr(game, name) for name in ("observation_space", "action_space")]
        inner = getattr(game, "unwrapped", game)
        counts = [getattr(inner, name, None) for name in COUNTS]
    except Exception:  # code of others: the adapter of one agent reads it again, and says what it raised
        return False
    sizes = {len(part.spaces) if isinstance(part, spaces.Tuple) else 0 for part in parts}
    return len(sizes) == 1 and min(sizes) >= 2 and bool(sizes & {count for count in counts if type(count) is int})


class SeveralAgents(pettingzoo.ParallelEnv):  # type: ignore[misc]
    """One such env. Args: game: of Gymnasium."""

    def __init__(self, game: Any) -> None:
        self._game = game
        self.possible_agents = [f"agent_{number}" for number in range(len(game.action_space.spaces))]
        self.agents: list[str] = []
        self.metadata = getattr(game, "metadata", {})
        self.render_mode = getattr(game, "render_mode", None)

    def observation_space(self, agent: str) -> Any:
        """The agent's part."""
        return self._game.observation_space.spaces[self.possible_agents.index(agent)]

    def action_space(self, agent: str) -> Any:
        """The agent's part."""
        return self._game.action_space.spaces[self.possible_agents.index(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], ...]:
        seen, infos = self._game.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._by_agent(seen), self._infos(infos)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """As in PettingZoo; an agent whose end comes before the others' does nothing, by its first action."""
        chosen = tuple(actions.get(agent, self._first_action(agent)) for agent in self.possible_agents)
        seen, rewards, terminated, truncated, infos = self._game.step(chosen)
        playing, ends, cuts = self.agents, self._by_agent(terminated), self._by_agent(truncated)
        self.agents = [agent for agent in playing if not (ends[agent] or cuts[agent])]
        parts = (self._by_agent(seen), self._by_agent(rewards), ends, cuts, self._infos(infos))
        return tuple({agent: part[agent] for agent in playing} for part in parts)

    def render(self) -> Any:
        """As the game does."""
        return self._game.render()

    def close(self) -> None:
        """As the game does."""
        self._game.close()

    def _by_agent(self, value: Any) -> dict[str, Any]:
        """A part for each agent; one value is everybody's."""
        own = value if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) != 0 else None
        if own is None or len(own) != len(self.possible_agents):
            return dict.fromkeys(self.possible_agents, value)
        return dict(zip(self.possible_agents, own, strict=True))

    def _infos(self, infos: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        shared = {key: self._by_agent(value) for key, value in infos.items()}
        return {agent: {key: part[agent] for key, part in shared.items()} for agent in self.possible_agents}

    def _first_action(self, agent: str) -> Any:
        space = self.action_space(agent)
        return space.start if isinstance(space, spaces.Discrete) else np.zeros(space.shape, space.dtype)


class SeveralAgentsEnv(ParallelEnv):
    """N such games."""

    @classmethod
    def of(
        cls, make_one: Callable[[], Any], *, env_id: str, num_envs: int, seat_plan: SeatPlan = ALONE
    ) -> SeveralAgentsEnv:
        """Make N games, one call of `make_one` each. Raises as `ParallelEnv.of`."""
        made = super().of(lambda: SeveralAgents(make_one()), env_id=env_id, num_envs=num_envs, seat_plan=seat_plan)
        assert isinstance(made, SeveralAgentsEnv)
        return made
