"""The pictures that a PettingZoo or Gymnasium game draws of itself, and the names of its actions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.guard.foreign_code import as_failure

logger = logging.getLogger(__name__)

MAX_SIDE = 480
"""Pixels; larger pictures are thinned."""

Frame = NDArray[np.uint8] | str | None


def frame_of(game: Any) -> Frame:
    """The picture that `render()` of a game returns: an image uint8 [H, W, 3] or text; None where it draws nothing."""
    try:
        if getattr(game, "render_mode", None) not in ("rgb_array", "ansi"):
            return None
        drawn = game.render()
    except (Exception, SystemExit, KeyboardInterrupt) as raised:  # code of others: it is played all the same
        error = as_failure(raised)
        logger.info("a game could not be drawn: %s: %s", type(error).__name__, error)
        return None
    if isinstance(drawn, str):
        return drawn
    image = np.asarray(drawn)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (3, 4) or not image.size:
        return None
    step = -(-max(image.shape[:2]) // MAX_SIDE)
    return np.ascontiguousarray(image[::step, ::step, :3])


ACTION_NAMES = "action_names"
"""Key of a game's `metadata`: names of the actions in their order, for all seats or by the name of the seat."""


def action_names_of(game: Any, seat: str) -> tuple[str, ...]:
    """The names that a game's metadata has for the actions of a seat; empty where there are none."""
    try:
        given = (getattr(game, "metadata", None) or {}).get(ACTION_NAMES, ())
        return tuple(str(name) for name in (given.get(seat, ()) if isinstance(given, Mapping) else given))
    except Exception as error:  # code of others: without names actions have numbers
        logger.info("a game's actions could not be named: %s: %s", type(error).__name__, error)
        return ()
