"""Tasks that processes do, whether of this machine or of a Ray cluster: their types, limits and failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from league.errors import LeagueError

Task = TypeVar("Task")
Answer = TypeVar("Answer")
SignOfLife = Callable[[], bool]
"""A task calls it now and then, as a match before every turn; it says True."""
Make = Callable[[Any], Callable[[Any, SignOfLife], Any]]
"""Makes what a process needs, given the setup; the result does a task, with a function to call now and then."""

WAIT_S = 0.25
"""Longest wait for an answer between two looks at the processes."""

MAX_SILENCE_S = 900.0
"""A task whose process has shown no sign of life for so long is given out again."""

MAX_LIVES = 3
"""Processes that may end over one task before all of them stop, or fail to start on one machine."""


class TasksFailed(LeagueError):  # noqa: N818
    """Tasks cannot be done: one is refused, or processes fail again and again."""


@dataclass(frozen=True)
class TaskRefused:
    """A task cannot be done anywhere. sentence: for the user."""

    sentence: str
