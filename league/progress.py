"""Progress of one thing that takes long: a line that is rewritten on a terminal, elsewhere one every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TextIO

LINE_EVERY_S = 10.0
FRAME_EVERY_S = 0.1


class ProgressLine:
    """Takes a text as often as the caller likes; to a file the first line comes after `LINE_EVERY_S`.

    As a context it is closed at the end, so that the sentence of an error has a line of its own.

    Args:
      out: where to. clock: seconds that never go back.
    """

    def __init__(self, out: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._is_terminal = out.isatty()
        self._due = clock() + (0.0 if self._is_terminal else LINE_EVERY_S)
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, text: str, *, is_last: bool = False) -> None:
        """Show it if the last one is old enough, or it is the last one on a terminal."""
        due = self._clock() >= self._due
        if self._is_terminal and (due or is_last):
            self._out.write(f"\r{text:<{len(self._shown)}}" + ("\n" if is_last else ""))
        elif due:
            self._out.write(f"{text}\n")
        else:
            return
        self._out.flush()
        self._shown = "" if is_last else text
        self._due = self._clock() + (FRAME_EVERY_S if self._is_terminal else LINE_EVERY_S)

    def close(self) -> None:
        """Leave the line, where one is being rewritten."""
        if self._is_terminal and self._shown:
            self._out.write("\n")
            self._out.flush()
            self._shown = ""
