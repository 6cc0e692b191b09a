"""Limits on processes that do tasks, whether a tournament starts them on this machine or Ray does on several."""

from __future__ import annotations

WAIT_S = 0.25
"""Longest wait for an answer between two looks at the processes."""

MAX_SILENCE_S = 900.0
"""A task whose process has shown no sign of life for so long is given out again."""

MAX_LIVES = 3
"""Processes that may end over one task before all of them stop, or fail to start on one machine."""
