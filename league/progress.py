"""Progress of one thing that takes long: a line rewritten on a terminal, elsewhere a new one every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TextIO

from league.wording import duration_text

FIRST_LINE_S, LINE_EVERY_S = 1.0, 10.0
FRAME_EVERY_S = 0.1


class ProgressLine:
    """Takes a text as often as the caller likes; to a file the first line comes after `FIRST_LINE_S`.

    As a context it is closed at the end, so that the sentence of an error has a line of its own.

    Args:
      out: where to. clock: seconds that never go back.
      limit_s: seconds after the first text when the work ends in any case.
    """

    def __init__(
        self, out: TextIO, *, limit_s: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._clock = clock
        self._is_terminal = out.isatty()
        self._limit_s = limit_s
        self._begun: float | None = None
        self._due = clock() + (0.0 if self._is_terminal else FIRST_LINE_S)
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, text: str, *, fraction: float | None = None, is_last: bool = False) -> None:
        """Show it if the last one is old enough, or it is the last one on a terminal.

        Args:
          fraction: of the work that is done, in [0, 1], from which the time left follows; None where nobody knows.
        """
        due = self._clock() >= self._due
        self._begun = self._clock() if self._begun is None else self._begun
        if fraction is not None:
            text += self._time_left(fraction)
        if self._is_terminal and (due or is_last):
            self._out.write(f"\r{text:<{len(self._shown)}}" + ("\n" if is_last else ""))
        elif due:
            self._out.write(f"{text}\n")
        else:
            return
        self._out.flush()
        self._shown = "" if is_last else text
        self._due = self._clock() + (FRAME_EVERY_S if self._is_terminal else LINE_EVERY_S)

    def _time_left(self, fraction: float) -> str:
        elapsed_s = self._clock() - (self._begun or 0.0)
        if not 0.0 < fraction < 1.0 or elapsed_s < FIRST_LINE_S:
            return ""
        left_s = elapsed_s * (1.0 - fraction) / fraction
        if self._limit_s is not None:
            left_s = min(left_s, max(self._limit_s - elapsed_s, 0.0))
        return f", about {duration_text(left_s)} left"

    def close(self) -> None:
        """Leave the line, where one is being rewritten."""
        if self._is_terminal and self._shown:
            self._out.write("\n")
            self._out.flush()
            self._shown = ""
