"""MinAtar's Breakout (Young & Tian 2019), as a game from outside; needs the extra `minatar`."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium

MOST_STEPS = 5_000
"""Of an episode: a perfect player would never end it."""


def make() -> Any:
    """One game: float32 [10, 10, 4] planes of paddle, ball, trail and bricks; stay, left or right."""
    game = importlib.import_module("minatar.gym").BaseEnv(game="breakout", use_minimal_action_set=True)
    return gymnasium.wrappers.TimeLimit(game, MOST_STEPS)
