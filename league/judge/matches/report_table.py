"""An evaluation as lines of text that fit a width, and as comma-separated values.

Shape letters: P players, E everyone who takes part, players first.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from league.envs.text.number_text import number_text
from league.judge.matches.evaluation import EvalReport, PlayerRow
from league.judge.matches.match_result import Interval
from league.judge.matches.pairs import PairRow
from league.text_table import TextTable

GAP = "  "
MEAN = "mean"


def print_report(report: EvalReport) -> None:
    """Print an evaluation: its table, who stood for which name and why, and what was left out."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = report_lines(report, width=width)
    lines += [f"  {player.player}: {player.reason}" for player in report.players]
    lines += [f"  {note}" for note in report.notes]
    print("\n".join(lines))


def report_lines(report: EvalReport, *, width: int | None) -> list[str]:
    """The table of an evaluation: a column for each player, a row for each opponent, a score in each cell.

    Args:
      width: characters of a line; None for no limit. Where names and intervals do not fit, columns are numbered, then
        intervals become half their width, then only the scores stay.
    """
    how = "likeliest action, no search" if report.conditions.greedy else "sampled actions"
    if report.conditions.search:
        how = f"most visited action of {report.conditions.search} simulations"
    played = {row.games for row in report.pairs} | {row.games for row in report.returns}
    games = f"{min(played)} to {max(played)}" if len(played) > 1 else str(max(played, default=0))
    title = f"{report.env_id}: {how}, {games} games a cell"
    if report.returns:
        rows = [[line.name, _four_digits(line.mean_return)] for line in report.returns]
        return [title, *TextTable(["player", "mean return"], rows).lines()]
    named, numbered = _named(report.players), _numbered(report.players)
    scores = _cells(report, lambda row: row.score, lambda score: 1.0 - score)
    for heads, cell in ((named, _interval), (numbered, _interval), (numbered, _half_width), (numbered, _value)):
        lines = _by_opponent(report, scores, heads, cell, mean_text=lambda mean: f"{mean:.2f}", corner="score against")
        if width is None or max(map(len, lines)) <= width:
            break
    return [title, *lines, *_margins(report, heads), *_team_returns(report)]


def _margins(report: EvalReport, heads: Sequence[str]) -> list[str]:
    """The table of how much more a seat of each player returned than its opponents', where the run counts returns.

    A good player may win few games, and much in those: a score says little there.
    """
    if report.score != "returns":
        return []
    margins = _cells(report, lambda row: row.margin, lambda margin: -margin)
    return [
        "",
        *_by_opponent(
            report,
            margins,
            heads,
            _three_digits,
            mean_text=number_text,
            corner="margin against",
        ),
    ]


def _team_returns(report: EvalReport) -> list[str]:
    """Lines with the mean return of both contenders of every match as each team; none where teams have one seat."""
    if not report.team_names:
        return []
    rows = []
    for row in report.pairs:
        own, others = row.returns_by_team, row.away_returns_by_team
        means = (f"{number_text(a)} v {number_text(b)}" for a, b in zip(own, others, strict=True))
        rows.append([f"{row.home} v {row.away}", *means])
    return ["", *TextTable(["mean return as", *report.team_names], rows).lines()]


def report_csv(report: EvalReport) -> str:
    """A line for each match, or for each player of a game of one team."""
    if report.returns:
        means = [(line.name, line.games, line.mean_return) for line in report.returns]
        heads = ("player", "games", "mean_return", "low", "high")
        return TextTable(heads, [(name, games, m.value, m.low, m.high) for name, games, m in means]).csv()
    rows = []
    for row in report.pairs:
        counts, score = (row.games, row.wins, row.draws, row.losses), row.score
        rows.append(
            (row.home, row.away, *counts, score.value, score.low, score.high, row.mean_steps, *row.returns_by_team)
        )
    counted = ("games", "wins", "draws", "losses", "score", "low", "high", "mean_steps")
    return TextTable(("home", "away", *counted, *_team_heads(report)), rows).csv()


def _team_heads(report: EvalReport) -> list[str]:
    """Column heads of the returns of home as each team."""
    return [
        f"return_as_team_{team}" for team in range(max((len(row.returns_by_team) for row in report.pairs), default=0))
    ]


def _by_opponent(
    report: EvalReport,
    cells: Mapping[tuple[str, str], Interval],
    heads: Sequence[str],
    cell: Callable[[Interval], str],
    *,
    mean_text: Callable[[float], str],
    corner: str,
) -> list[str]:
    """The lines of a table with these column heads [P] and way to write a cell; the last one is the mean."""
    players = [player.player for player in report.players]
    everyone = dict.fromkeys([*players, *(row.away for row in report.pairs)])
    met = [name for name in everyone if any((player, name) in cells for player in players)]
    labels = dict(zip(players, heads, strict=True))
    numbered = [f"{labels[name]} {name}" if labels.get(name, "").isdigit() else name for name in met]
    rows = [
        [label, *(cell(cells[player, name]) if (player, name) in cells else "" for player in players)]
        for label, name in zip(numbered, met, strict=True)
    ]
    if len(met) > 1:
        values = [[cells[player, name].value for name in met if (player, name) in cells] for player in players]
        rows.append([MEAN, *(mean_text(float(np.mean(column))) if column else "" for column in values)])
    return TextTable([corner, *heads], rows).lines()


def _cells(
    report: EvalReport, of: Callable[[PairRow], Interval | None], other_side: Callable[[float], float]
) -> dict[tuple[str, str], Interval]:
    """(player, opponent) -> a figure of the player; a match of two sides gives that of both.

    Args:
      of: the figure of home. other_side: the same of away, which lies lower where that of home lies higher.
    """
    cells: dict[tuple[str, str], Interval] = {}
    players = {player.player for player in report.players}
    for row in report.pairs:
        home = of(row)
        if home is None:
            continue
        cells[row.home, row.away] = home
        if row.away in players and len(row.by_team) == 2:
            cells[row.away, row.home] = Interval(other_side(home.value), other_side(home.high), other_side(home.low))
    return cells


def _named(players: Sequence[PlayerRow]) -> list[str]:
    """[P] names, with what stands for them where that is another name."""
    return [
        player.player
        if _shown(player.members) in ("", player.player)
        else f"{player.player} = {_shown(player.members)}"
        for player in players
    ]


def _numbered(players: Sequence[PlayerRow]) -> list[str]:
    """[P] numbers from 1, which stand before the names of the rows too."""
    return [str(number) for number in range(1, len(players) + 1)]


def _shown(members: Sequence[tuple[float, str]]) -> str:
    """The heaviest snapshot that stands for a name, and how many more; empty where it is none."""
    if not members:
        return ""
    weight, snapshot = members[0]
    return snapshot if len(members) == 1 else f"{weight:.0%} {snapshot}, {len(members) - 1} more"


def _interval(score: Interval) -> str:
    return f"{score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"


def _four_digits(mean: Interval) -> str:
    return _with_bounds(mean, 4)


def _three_digits(mean: Interval) -> str:
    return _with_bounds(mean, 3)


def _with_bounds(mean: Interval, digits: int) -> str:
    bounds = f" [{number_text(mean.low, digits)}, {number_text(mean.high, digits)}]" if math.isfinite(mean.low) else ""
    return number_text(mean.value, digits) + bounds


def _half_width(score: Interval) -> str:
    half = max(score.high - score.value, score.value - score.low)
    return f"{score.value:.2f}".removeprefix("0") + "±" + f"{half:.2f}".removeprefix("0")


def _value(score: Interval) -> str:
    return f"{score.value:.2f}"
