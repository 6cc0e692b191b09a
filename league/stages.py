"""Stages of what takes seconds: a command shows them as they begin, and a Python program finds them in its log."""

from __future__ import annotations

import logging

LOGGER = logging.getLogger(__name__)


def begin_stage(text: str, *, seconds: float | None = None) -> None:
    """Say what begins now.

    Args:
      text: as "looking at connect_four". seconds: that it takes, about, where that is known.
    """
    LOGGER.info("%s", text if seconds is None else f"{text}, about {max(round(seconds), 1)} s")
