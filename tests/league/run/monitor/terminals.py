"""A terminal that keeps what is written to it, and a clock that only a test moves."""

from __future__ import annotations

import io


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
