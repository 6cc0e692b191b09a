"""Gymnasium's envs as `BatchedEnv` of one seat: as an array env if one restarts correctly, else one by one.

Source: Gymnasium 1.4, `Env` and the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium

from league.envs.adapters.external import ExternalEnv, make_games
from league.envs.adapters.gymnasium_arrays import array_env
from league.envs.adapters.outline import outline_of
from league.envs.adapters.spaces import MASK, mask_of
from league.envs.closing import closed_on_error
from league.envs.protocol import BatchedEnv, EnvError

SEAT = "player"


def make_registered(name: str, *, kwargs: Mapping[str, object], num_envs: int) -> BatchedEnv:
    """Make the env that Gymnasium has registered as `name`, with its own time limit.

    Raises:
      EnvError: no such id, a missing package, or kwargs that do not fit.
    """
    env_id = f"gymnasium:{name}"
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise EnvError(f"unknown env {env_id!r}: {error}") from error
    except ImportError as error:
        raise EnvError(f"{env_id}: a package is missing ({error}); install it and try again") from error
    if spec.vector_entry_point is not None:
        made = array_env(name, env_id=env_id, kwargs=kwargs, num_envs=num_envs)
        if made is not None:
            return made
    unchecked = replace(spec, order_enforce=False)  # nothing here steps before a reset
    options = {"disable_env_checker": True, **kwargs}  # the turn builder checks the same things
    return GymnasiumEnv.of(lambda: gymnasium.make(unchecked, **options), env_id=env_id, num_envs=num_envs)


class GymnasiumEnv(ExternalEnv):
    """N envs of Gymnasium, stepped one by one."""

    @classmethod
    def of(cls, make_one: Callable[[], Any], *, env_id: str, num_envs: int) -> GymnasiumEnv:
        """Make N envs, one call of `make_one` each.

        Raises:
          EnvError: see `outline_of`.
        """
        games = make_games(make_one, env_id=env_id, num_envs=num_envs)
        with closed_on_error(games):
            space = games[0].observation_space
            if callable(space):
                raise EnvError(
                    f"{env_id}: its observation_space is a method, as PettingZoo's, but it has no possible_agents; list"
                    " the name of every agent there"
                )
            has_mask = MASK in getattr(space, "spaces", ()) or MASK in _first_infos(games[0], env_id=env_id)
            outline = outline_of(env_id, [SEAT], [space], [games[0].action_space], has_mask=has_mask)
            return cls(games, replace(outline, make_one=make_one, make_bare=make_one))

    def _begin(self, game: int, seed: int) -> None:
        observation, infos = self._games[game].reset(seed=seed)
        self._show_one(game, observation, infos)

    def _advance(self, game: int, answers: list[tuple[int, Any]]) -> None:
        observation, reward, terminated, truncated, infos = self._games[game].step(answers[0][1])
        if reward != 0:  # also true of NaN, which the builder then refuses
            self._builder.earn(game, 0, reward)
        if not (terminated or truncated):
            self._show_one(game, observation, infos)
            return
        cut = bool(truncated) and not terminated
        if cut:
            self._builder.keep_final(game, 0, self._builder.encode(0, observation))
        self._finish(game, truncated=cut)

    def _show_one(self, game: int, observation: Any, infos: Mapping[str, Any]) -> None:
        self._builder.show(game, 0, observation, mask_of(observation, infos) if self.spec.has_mask else None)


def _first_infos(game: Any, *, env_id: str) -> Mapping[str, Any]:
    """The infos of the first reset.

    Raises:
      EnvError: it raised, or did not return an observation and infos.
    """
    try:
        begun = game.reset(seed=0)
    except Exception as error:  # code of others: whatever it raises is their env's error, not ours
        raise EnvError(f"{env_id}: its first reset raised {type(error).__name__}: {error} (seed 0)") from error
    if not (isinstance(begun, tuple) and len(begun) == 2 and isinstance(begun[1], Mapping)):
        raise EnvError(
            f"{env_id}: reset must return an observation and a dict of infos, as in Gymnasium, and step five values;"
            " envs of the older Gym return fewer"
        )
    return begun[1]
