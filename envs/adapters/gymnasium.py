"""Gymnasium's envs as `BatchedEnv` of one seat: as an array env if one restarts correctly, else one by one.

Source: Gymnasium 1.4, `Env` and the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

from league.envs.adapters.checks.asking import asked, unpacked
from league.envs.adapters.checks.masks import NOT_READ, MaskMethod, late_mask, mask_name
from league.envs.adapters.external import ExternalEnv, make_games
from league.envs.adapters.gymnasium_arrays import array_env
from league.envs.adapters.outline import outline_of
from league.envs.closing import closed_on_error
from league.envs.guard.foreign_code import as_failure
from league.envs.protocol import BatchedEnv, EnvError
from league.envs.registry import adapted
from league.envs.seat_plan import ALONE, SeatPlan

SEAT = "player"
STEP_PARTS = "an observation, a reward, terminated, truncated, infos"


def make_registered(
    name: str, *, kwargs: Mapping[str, object], num_envs: int, seat_plan: SeatPlan = ALONE
) -> BatchedEnv:
    """Make the env that Gymnasium has registered as `name`, with its own time limit.

    Raises:
      EnvError: no such id, a missing package, or kwargs that do not fit.
    """
    env_id = f"gymnasium:{name}"
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.Error as error:
        module, _, own = name.rpartition(":")
        package = module or "the package that registers it"
        advice = f"name a function of yours that imports {package} and returns gymnasium.make({own!r})"
        raise EnvError(f"unknown env {env_id!r}: {str(error).rstrip('.')}; {advice}") from error
    except ImportError as error:
        raise EnvError(f"{env_id}: a package is missing ({error}); install it and try again") from error
    if spec.vector_entry_point is not None:
        seat_plan.refuse(env_id, "a Gymnasium env")
        made = array_env(name, env_id=env_id, kwargs=kwargs, num_envs=num_envs)
        if made is not None:
            return made
    unchecked = replace(spec, order_enforce=False)  # nothing here steps before a reset
    options = {"disable_env_checker": True, **kwargs}  # the turn builder checks the same things

    def make_one() -> Any:
        return gymnasium.make(unchecked, **options)

    (first,) = make_games(make_one, env_id=env_id, num_envs=1)
    return adapted(first, make_one, env_id=env_id, num_envs=num_envs, seat_plan=seat_plan)


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
            game = games[0]
            space = asked(env_id, "observation_space", lambda: game.observation_space)
            if callable(space):
                raise EnvError(
                    f"{env_id}: its observation_space is a method, as PettingZoo's, but it has no possible_agents; list"
                    " the name of every agent there"
                )
            method = asked(env_id, "action_masks", lambda: MaskMethod.of(game, has_agents=False))
            outline = outline_of(
                env_id,
                [SEAT],
                [space],
                [asked(env_id, "action_space", lambda: game.action_space)],
                shows_mask=lambda: f"{method.name}()" if method is not None else _first_mask(game, env_id=env_id),
                mask_method=method,
            )
            return cls(games, replace(outline, make_one=make_one, make_bare=make_one))

    def _begin(self, game: int, seed: int) -> None:
        begun = self._games[game].reset(seed=seed)
        observation, infos = unpacked(self.spec.env_id, "reset", begun, "an observation, infos")
        self._show(game, 0, SEAT, observation, infos)

    def _advance(self, game: int, answers: list[tuple[int, Any]]) -> None:
        stepped = self._games[game].step(answers[0][1])
        if type(stepped) is not tuple or len(stepped) != 5:
            stepped = unpacked(self.spec.env_id, "step", stepped, STEP_PARTS)
        observation, reward, terminated, truncated, infos = stepped
        if type(reward) is np.ndarray or reward != 0:  # also true of NaN, which the builder then refuses
            self._builder.earn(game, 0, reward)
        if not (terminated or truncated):
            self._show(game, 0, SEAT, observation, infos)
            return
        cut = bool(truncated) and not terminated
        if cut:
            self._builder.keep_final(game, 0, self._builder.encode(0, observation))
        self._finish(game, truncated=cut)


def _first_mask(game: Any, *, env_id: str) -> str:
    """The name of a mask that the first reset shows; empty where it shows none.

    Raises:
      EnvError: it raised, or did not return an observation and infos, or says what is legal in another form.
    """
    try:
        begun = game.reset(seed=0)
    except (Exception, SystemExit, KeyboardInterrupt) as raised:  # code of others: it is their env's error
        error = as_failure(raised)
        raise EnvError(f"{env_id}: its first reset raised {type(error).__name__}: {error} (seed 0)") from error
    if not (isinstance(begun, tuple) and len(begun) == 2 and isinstance(begun[1], Mapping)):
        raise EnvError(
            f"{env_id}: reset must return an observation and a dict of infos, as in Gymnasium, and step five values;"
            " envs of the older Gym return fewer"
        )
    name = mask_name(*begun)
    if any(f"'{other}'" in name for other in NOT_READ):
        raise late_mask(env_id, "", name, acts_in_box=False)
    return name
