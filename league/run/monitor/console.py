"""Shows a run on a terminal as a live table, elsewhere as a plain line every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from league.run.monitor.run_table import number, returns_text, run_table
from league.run.monitor.view import RunView
from league.wording import clock_text, counted, noun_for, short_count

LINE_INTERVAL_S = 10.0
FRAME_INTERVAL_S = 0.25


class RunConsole:
    """Takes views as often as the caller likes and draws as often as a person can read.

    `start` and `close`, or a context manager. After `close` the last table stays on the screen.
    """

    def __init__(self, out: TextIO, *, clock: Callable[[], float], width: int | None = None) -> None:
        """Args: clock: monotonic seconds. width: characters, by default the terminal's."""
        self._out = out
        self._clock = clock
        self._console = Console(file=out, width=width, highlight=False)
        self._live: Live | None = None
        self._due = clock()
        self._last: RunView | None = None
        self._drawn: RunView | None = None
        self._gone = False

    @property
    def is_live(self) -> bool:
        """True if output is a live table rather than lines."""
        return self._console.is_terminal

    def start(self) -> None:
        """Take over the terminal, where there is one."""
        if self.is_live:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()

    def show(self, view: RunView) -> None:
        """Draw the view if the last drawing is old enough, or the phase has changed."""
        changed = self._last is None or self._last.phase != view.phase
        self._last = view
        if self._clock() < self._due and not changed:
            return
        self._draw(view)

    def say(self, sentence: str) -> None:
        """Print one sentence, above the table."""
        if self._gone:
            return
        try:
            self._console.print(Text(sentence), soft_wrap=True)
        except (OSError, ValueError):
            self._gone = True

    def close(self) -> None:
        """Draw the last view, where it was not drawn yet, and give the terminal back; may be called twice."""
        if self._last is not None and self._last is not self._drawn:
            self._draw(self._last)
        self._last = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __enter__(self) -> RunConsole:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _draw(self, view: RunView) -> None:
        if self._gone:
            return
        self._drawn = view
        try:
            self._draw_on(view)
        except (OSError, ValueError):  # the reader of a pipe has left, or the stream is closed: training continues
            self._gone = True

    def _draw_on(self, view: RunView) -> None:
        if self._live is not None:
            self._live.update(run_table(view), refresh=True)
            self._due = self._clock() + FRAME_INTERVAL_S
        else:
            self._out.write(plain_line(view) + "\n")
            self._out.flush()
            self._due = self._clock() + LINE_INTERVAL_S


def plain_line(view: RunView) -> str:
    """The run in one line of text."""
    parts = [
        clock_text(view.elapsed_s),
        view.phase,
        f"{short_count(view.env_steps)} steps",
        f"{short_count(view.steps_per_s)}/s",
        f"{short_count(view.games)} {noun_for(view.games, 'game')}",
        counted(len(view.players), "player"),
        counted(view.snapshots, "snapshot"),
    ]
    if view.budget_fraction is not None:
        left_s = view.left_s
        left = "" if left_s is None else f", {clock_text(left_s)} left"
        parts.insert(1, f"{view.budget_fraction:.0%}{left}")
    rated = [player for player in view.players if player.rating is not None]
    if rated:
        best = max(rated, key=lambda player: player.rating or 0.0)
        parts.append(f"best {best.player} {best.rating:+z.0f} Elo")
    if view.players and view.players[0].mean_return is not None:
        parts.append(f"return {returns_text(view.players[0].mean_return, ())}")
    learnt = [player for player in view.players if player.loss is not None]
    if learnt:
        parts.append(f"loss {number(learnt[0].loss, '.3f')}")
        parts.append(f"lag {number(learnt[0].policy_lag, '.1f')}")
    return "  ".join(parts)
