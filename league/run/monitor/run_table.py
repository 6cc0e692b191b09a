"""The live table of a run: players by as many columns as fit, opponents with most games first, and the last notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from league.envs.text.number_text import number_text
from league.run.monitor.view import PayoffView, PlayerView, RunView
from league.wording import clock_text, counted, duration_text, noun_for, short_count

MAX_PLAYERS_SHOWN = 12
MAX_COLUMNS_SHOWN = 8
MAX_NOTES_SHOWN = 4
MAX_SEATS_SHOWN = 4
GAP = 2
"""Characters between two columns."""
STYLES = {"training": "bold green", "running": "bold green", "rating": "bold cyan", "failed": "bold red"}
OTHER_STYLE = "bold yellow"
"""Of a phase in which nothing is learnt."""


@dataclass(frozen=True)
class PlayerField:
    """A column of the players. rank: 0 for the one that is shown first where few fit; cell: its text for a player."""

    head: str
    rank: int
    cell: Callable[[PlayerView], str]


@dataclass(frozen=True)
class RunTable:
    """The table of a run, as wide as its console."""

    view: RunView

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As rich asks for it."""
        view, width = self.view, options.max_width
        parts: list[RenderableType] = [_head(view), _players_table(view.players, width)]
        if view.payoff is not None and view.payoff.columns:
            parts.append(_payoff_table(view.payoff, width))
        parts += [Text(f"  {note}", style="dim") for note in view.notes[-MAX_NOTES_SHOWN:]]
        yield Group(*parts)


def run_table(view: RunView) -> RenderableType:
    """The run as a table of its players, their win rates and the last notes."""
    return RunTable(view)


def _head(view: RunView) -> Text:
    budget = "" if view.budget_fraction is None else f"  {view.budget_fraction:.0%} of the budget"
    left = "" if view.left_s is None else f", {clock_text(view.left_s)} left"
    return Text.assemble(
        (view.phase, STYLES.get(view.phase, OTHER_STYLE)),
        f"  {clock_text(view.elapsed_s)}{budget}{left}  {short_count(view.env_steps)} steps  ",
        (f"{short_count(view.steps_per_s)} steps/s", "bold"),
        f"  {short_count(view.games)} {noun_for(view.games, 'game')}  {counted(view.snapshots, 'snapshot')}"
        f"  {counted(view.workers, 'worker')}",
    )


def _players_table(players: tuple[PlayerView, ...], width: int) -> Table:
    shown = players[:MAX_PLAYERS_SHOWN]
    columns = _fitting([(column, [column.cell(player) for player in shown]) for column in COLUMNS], width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for place, (column, _) in enumerate(columns):
        table.add_column(column.head, justify="left" if place in (0, len(COLUMNS) - 1) else "right", no_wrap=True)
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*map(escape, row))
    if len(players) > MAX_PLAYERS_SHOWN:
        table.add_row(f"... {len(players) - MAX_PLAYERS_SHOWN} more")
    return table


def _fitting(columns: Sequence[tuple[PlayerField, list[str]]], width: int) -> list[tuple[PlayerField, list[str]]]:
    """The columns of the first ranks that fit side by side, in their order; the first is always among them."""
    left, kept = width + GAP, set[str]()
    for column, cells in sorted(columns, key=lambda each: each[0].rank):
        left -= max(map(len, (column.head, *cells))) + GAP
        if left < 0 and kept:
            break
        kept.add(column.head)
    return [each for each in columns if each[0].head in kept]


def _payoff_table(payoff: PayoffView, width: int) -> Table:
    """Win rates of rows against as many columns as fit; those with most games come first."""
    rows = list(zip(payoff.rows, payoff.win_rates, strict=True))[:MAX_PLAYERS_SHOWN]
    head = "win rate against"
    left, columns = width - max(map(len, (head, *(name for name, _ in rows)))), list[str]()
    for column in payoff.columns[:MAX_COLUMNS_SHOWN]:
        left -= GAP + max(len(column), len("0.00"))
        if left < 0 and columns:
            break
        columns.append(column)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    table.add_column(head, no_wrap=True)
    for column in columns:
        table.add_column(escape(column), justify="right", no_wrap=True)
    for row, win_rates in rows:
        table.add_row(escape(row), *[_win_rate(win_rate) for win_rate in win_rates[: len(columns)]])
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


def _returns(player: PlayerView) -> str:
    return "-" if player.mean_return is None else returns_text(player.mean_return, player.seat_returns)


def returns_text(mean: float, seats: tuple[float, ...]) -> str:
    """A mean return, and those of the single seats where there are a few."""
    if not 1 < len(seats) <= MAX_SEATS_SHOWN:
        return _return(mean)
    return f"{_return(mean)} ({' '.join(_return(value) for value in seats)})"


def _return(value: float) -> str:
    if abs(value) >= 100.0:
        return f"{value:z,.0f}"
    return f"{value:z.2f}" if abs(value) >= 0.05 or number_text(value, 2) == "0" else number_text(value, 2)


def next_snapshot_text(player: PlayerView) -> str:
    """The state of the gate, and the latest time of the next snapshot whatever the gate says."""
    parts = []
    if player.gate is not None and player.gate.gate_opponents and player.gate.steps >= player.gate.min_steps:
        parts.append(f"beats {player.gate.beaten}/{player.gate.gate_opponents}")
    if player.next_snapshot_s is not None:
        parts.append(f"within {duration_text(player.next_snapshot_s)}")
    return ", ".join(parts) or "-"


def number(value: float | None, form: str) -> str:
    """A number by its format, or a dash."""
    return "-" if value is None else format(value, form)


COLUMNS = (
    PlayerField("player", 0, lambda player: player.player),
    PlayerField("updates", 11, lambda player: short_count(player.version)),
    PlayerField("steps", 3, lambda player: short_count(player.trained_steps)),
    PlayerField("rating", 1, _rating),
    PlayerField("win", 2, lambda player: "-" if player.win_rate is None else f"{player.win_rate:.2f}"),
    PlayerField("return", 5, _returns),
    PlayerField("length", 10, lambda player: number(player.episode_length, ".1f")),
    PlayerField("loss", 7, lambda player: number(player.loss, ".3f")),
    PlayerField("entropy", 8, lambda player: number(player.entropy, ".2f")),
    PlayerField("lag", 9, lambda player: number(player.policy_lag, ".1f")),
    PlayerField("snapshots", 6, lambda player: str(player.snapshots)),
    PlayerField("next snapshot", 4, next_snapshot_text),
)
