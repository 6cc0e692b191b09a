"""Makes games that draw themselves where their package can: PettingZoo's and Gymnasium's `render()`."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Protocol, runtime_checkable

from league.envs.protocol import BatchedEnv, EnvConfig, EnvError
from league.envs.registry import BUILT_IN, make

RENDER_MODES = ("rgb_array", "ansi")
DRAWN_AS_TEXT = "openspiel:"
"""Ids of games that take no render mode: the adapter describes them."""


@runtime_checkable
class KeepsFrames(Protocol):
    """An env that keeps the last frame of a game that restarts."""

    def keep_frames(self) -> None:
        """Draw every game once more before it restarts."""
        ...


def make_shown(config: EnvConfig, *, num_envs: int) -> BatchedEnv:
    """As `league.envs.registry.make`, drawn: with a render mode where the game takes one, else with its own.

    Raises:
      EnvError: see `make`.
    """
    takes_none = config.id in BUILT_IN or config.id.startswith(DRAWN_AS_TEXT) or "render_mode" in config.kwargs
    for mode in () if takes_none else RENDER_MODES:
        with contextlib.suppress(EnvError):
            env = make(replace(config, kwargs={**config.kwargs, "render_mode": mode}), num_envs=num_envs)
            if isinstance(env, KeepsFrames):
                env.keep_frames()
                return env
            env.close()
    env = make(config, num_envs=num_envs)
    if isinstance(env, KeepsFrames):
        env.keep_frames()
    return env
