"""Shows a run on a terminal as a live table, elsewhere as a plain line every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from league.run.monitor.view import GateView, PayoffView, PlayerView, RunView
from league.wording import counted, noun_for

LINE_INTERVAL_S = 10.0
FRAME_INTERVAL_S = 0.25
MAX_PLAYERS_SHOWN = 12
MAX_COLUMNS_SHOWN = 8
MAX_NOTES_SHOWN = 4
MAX_SEATS_SHOWN = 4


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
        duration(view.elapsed_s),
        view.phase,
        f"{count(view.env_steps)} steps",
        f"{count(view.steps_per_s)}/s",
        f"{count(view.games)} {noun_for(view.games, 'game')}",
        counted(len(view.players), "player"),
        counted(view.snapshots, "snapshot"),
    ]
    if view.budget_fraction is not None:
        parts.insert(1, f"{view.budget_fraction:.0%}")
    rated = [player for player in view.players if player.rating is not None]
    if rated:
        best = max(rated, key=lambda player: player.rating or 0.0)
        parts.append(f"best {best.player} {best.rating:+z.0f} Elo")
    if view.players and view.players[0].mean_return is not None:
        parts.append(f"return {returns_text(view.players[0].mean_return, ())}")
    learnt = [player for player in view.players if player.loss is not None]
    if learnt:
        parts.append(f"loss {_number(learnt[0].loss, '.3f')}")
        parts.append(f"lag {_number(learnt[0].policy_lag, '.1f')}")
    return "  ".join(parts)


def run_table(view: RunView) -> RenderableType:
    """The run as a table of its players, their win rates and the last notes."""
    budget = "" if view.budget_fraction is None else f"  {view.budget_fraction:.0%} of the budget"
    head = Text.assemble(
        (view.phase, "bold green" if view.phase == "running" else "bold yellow"),
        f"  {duration(view.elapsed_s)}{budget}  {count(view.env_steps)} steps  ",
        (f"{count(view.steps_per_s)} steps/s", "bold"),
        f"  {count(view.games)} {noun_for(view.games, 'game')}  {counted(view.snapshots, 'snapshot')}"
        f"  {counted(view.workers, 'worker')}",
    )
    parts: list[RenderableType] = [head, _players_table(view.players)]
    if view.payoff is not None and view.payoff.columns:
        parts.append(_payoff_table(view.payoff))
    parts += [Text(f"  {note}", style="dim") for note in view.notes[-MAX_NOTES_SHOWN:]]
    return Group(*parts)


def _players_table(players: tuple[PlayerView, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("player")
    for header in ("updates", "steps", "rating", "win", "return", "length", "loss", "entropy", "lag", "snapshots"):
        table.add_column(header, justify="right")
    table.add_column("next snapshot")
    for player in players[:MAX_PLAYERS_SHOWN]:
        table.add_row(
            escape(player.player),
            count(player.version),
            count(player.trained_steps),
            _rating(player),
            "-" if player.win_rate is None else f"{player.win_rate:.2f}",
            "-" if player.mean_return is None else returns_text(player.mean_return, player.seat_returns),
            _number(player.episode_length, ".1f"),
            _number(player.loss, ".3f"),
            _number(player.entropy, ".2f"),
            _number(player.policy_lag, ".1f"),
            str(player.snapshots),
            "-" if player.gate is None else gate_text(player.gate),
        )
    if len(players) > MAX_PLAYERS_SHOWN:
        table.add_row(f"... {len(players) - MAX_PLAYERS_SHOWN} more")
    return table


def _payoff_table(payoff: PayoffView) -> Table:
    """Win rates of rows against columns, the newest columns where there are too many."""
    first = max(0, len(payoff.columns) - MAX_COLUMNS_SHOWN)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("win rate against")
    for column in payoff.columns[first:]:
        table.add_column(escape(column), justify="right")
    for row, win_rates in list(zip(payoff.rows, payoff.win_rates, strict=True))[:MAX_PLAYERS_SHOWN]:
        table.add_row(escape(row), *[_win_rate(win_rate) for win_rate in win_rates[first:]])
    return table


def _win_rate(win_rate: float | None) -> Text:
    if win_rate is None:
        return Text("-", style="dim")
    style = "green" if win_rate >= 0.6 else "red" if win_rate < 0.4 else ""
    return Text(f"{win_rate:.2f}", style=style)


def _rating(player: PlayerView) -> str:
    if player.rating is None:
        return "-"
    if player.rating_low is None or player.rating_high is None:
        return f"{player.rating:+z.0f}"
    return f"{player.rating:+z.0f} \u00b1{(player.rating_high - player.rating_low) / 2:.0f}"


def returns_text(mean: float, seats: tuple[float, ...]) -> str:
    """A mean return, and those of the single seats where there are a few."""
    if not 1 < len(seats) <= MAX_SEATS_SHOWN:
        return _return(mean)
    return f"{_return(mean)} ({' '.join(_return(value) for value in seats)})"


def _return(value: float) -> str:
    if abs(value) >= 100.0:
        return f"{value:z.0f}"
    return f"{value:.2g}" if 0.0 < abs(value) < 0.05 else f"{value:z.2f}"


def gate_text(gate: GateView) -> str:
    """Explains in a few words why the next snapshot has not been taken yet."""
    if gate.steps < gate.min_steps:
        return f"{gate.steps / max(1, gate.min_steps):.0%} of the least steps"
    return f"beats {gate.beaten}/{gate.gate_opponents}, {gate.steps / max(1, gate.timeout_steps):.0%} of the time-out"


def duration(seconds: float) -> str:
    """h:mm:ss."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def count(value: float) -> str:
    """A number as a person reads it: 999, 12.3k, 4.56M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * limit:
            return f"{value / limit:.3g}{unit}" if abs(value) < 999.5 * limit else f"{value / limit:.0f}{unit}"
    return f"{value:.0f}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
