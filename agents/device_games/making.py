"""Makes a game on a device from its configuration, by way of the same game in numpy, which checks the options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from league.agents.device_games.device_games import DEVICE_GAMES, require_device_form
from league.agents.device_games.draws import Draws
from league.agents.device_games.game import DeviceGame
from league.envs.plugins import load
from league.envs.protocol import EnvConfig
from league.envs.registry import make

OPENINGS = 1 << 14
"""Random openings from which games with `opening_plies` start; they are dealt once, by the game in numpy."""


def make_device_game(config: EnvConfig, *, num_envs: int, device: torch.device, seed: int) -> DeviceGame:
    """Make `num_envs` games on the device. Call `reset` before the first `step`.

    Raises:
      EnvError: the game has no device form, or its options do not fit.
    """
    require_device_form(config)
    openings = OPENINGS if config.kwargs.get("opening_plies") else 1
    source = make(config, num_envs=openings)
    source.reset(seed)
    build: Callable[..., Any] = load(DEVICE_GAMES[config.id])
    game: DeviceGame = build(source, num_envs=num_envs, device=device, draws=Draws(seed, device=device))
    return game
