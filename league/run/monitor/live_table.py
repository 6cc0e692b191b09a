"""A table that changes while something is played: redrawn on a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

LINE_EVERY_S = 10.0
FRAME_EVERY_S = 1.0


@dataclass(frozen=True)
class TableView:
    """A table. title: one line above it; heads: of its columns; rows: one text for each column."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class LiveTable:
    """Shows a table as often as a person can read; a context manager that gives the terminal back.

    Args:
      out: where to. clock: seconds that never go back.
    """

    def __init__(self, out: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(file=out, highlight=False)
        self._clock = clock
        self._live: Live | None = None
        self._due = clock() + (0.0 if self._console.is_terminal else LINE_EVERY_S)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, view: Callable[[], TableView]) -> None:
        """Draw what `view` makes, if the last drawing is old enough; else it is not asked."""
        if self._clock() < self._due:
            return
        made = view()
        if self._live is not None:
            self._live.update(Group(Text(made.title), _drawn(made)), refresh=True)
        else:
            self._console.print(Text(made.title))
        self._due = self._clock() + (FRAME_EVERY_S if self._live is not None else LINE_EVERY_S)


def _drawn(view: TableView) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, head in enumerate(view.heads):
        table.add_column(head, justify="left" if column == 1 else "right", no_wrap=True)
    for row in view.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
