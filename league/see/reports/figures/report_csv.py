"""The static report as comma-separated values: one file for each kind of figure, or all of them in one long table."""

from __future__ import annotations

from collections.abc import Iterator

from league.see.reports.figures.figures_page import Report, RunFigures
from league.text_table import TextTable

Cell = str | int | float | None
Rows = Iterator[tuple[Cell, ...]]

LONG = ("figure", "run", "policy", "opponent", "metric", "step", "value", "low", "high", "games")
"""Columns of the long table; a cell that a figure does not have is empty."""


def report_files(report: Report) -> dict[str, str]:
    """File name -> content of a table for each kind of figure; kinds without a row are left out."""
    files = {}
    for name, (heads, make) in _TABLES.items():
        rows = [(run.name, *row) for run in report.runs for row in make(run)]
        if rows:
            files[f"{name}.csv"] = TextTable(("run", *heads), rows).csv()
    return files


def report_long(report: Report) -> str:
    """All figures that have numbers in one table."""
    return TextTable(LONG, [row for run in report.runs for row in _long(run)]).csv()


def _ratings(run: RunFigures) -> Rows:
    for curve in run.ratings.curves:
        for point in curve.points:
            yield point.policy, curve.player, point.trained_steps, point.elo, point.low, point.high, point.games
    for point in run.ratings.fixed:
        yield point.policy, None, None, point.elo, point.low, point.high, point.games


def _payoff(run: RunFigures) -> Rows:
    names = [policy.policy for policy in run.payoff.policies]
    for cell in run.payoff.cells:
        yield (
            names[cell.row], names[cell.column], cell.win_rate, cell.low, cell.high, cell.games, cell.effective_games
        )  # fmt: skip


def _lineage(run: RunFigures) -> Rows:
    for node in run.lineage.nodes:
        yield node.snapshot, node.player, node.trained_steps, node.kind, node.parent, node.donor, node.reason, node.elo


def _meta_game(run: RunFigures) -> Rows:
    for member in run.meta_game.members:
        yield member.policy, member.nash, member.advantage, member.alpha_rank, member.x, member.y


def _yardsticks(run: RunFigures) -> Rows:
    for curve in run.yardsticks.curves:
        for point in curve.points:
            yield (
                curve.yardstick, curve.player, point.snapshot, point.trained_steps, point.score, point.low, point.high,
                point.games,
            )  # fmt: skip


def _probes(run: RunFigures) -> Rows:
    for curve in run.yardsticks.probes:
        for point in curve.points:
            yield (
                curve.probe,
                curve.yardstick,
                curve.scale,
                point.snapshot,
                point.env_steps,
                point.value,
                point.low,
                point.high,
                point.games,
            )


def _curves(run: RunFigures) -> Rows:
    for player, curves in (("", run.curves), *((one.player, one.curves) for one in run.player_curves)):
        for curve in curves:
            for step, value in zip(curve.steps, curve.values, strict=True):
                yield player or None, curve.metric, step, value


def _mixes(run: RunFigures) -> Rows:
    for mix in run.mixes:
        for span in mix.spans:
            for opponent, share, score in zip(mix.opponents, span.shares, span.scores, strict=True):
                yield mix.player, span.snapshot, span.trained_steps, span.games, opponent, share, score


def _long(run: RunFigures) -> Rows:
    for policy, _, steps, elo, low, high, games in _ratings(run):
        yield "rating", run.name, policy, None, "elo", steps, elo, low, high, games
    for home, away, rate, low, high, games, _ in _payoff(run):
        yield "payoff", run.name, home, away, "win_rate", None, rate, low, high, games
    for member, nash, _, alpha_rank, _, _ in _meta_game(run):
        for name, weight in (("nash", nash), ("alpha_rank", alpha_rank)):
            yield "meta_game", run.name, member, None, name, None, weight, None, None, None
    for yardstick, _, snapshot, steps, score, low, high, games in _yardsticks(run):
        yield "yardstick", run.name, snapshot, yardstick, "score", steps, score, low, high, games
    for probe, yardstick, _, snapshot, steps, value, low, high, games in _probes(run):
        yield "probe", run.name, snapshot, yardstick, probe, steps, value, low, high, games
    for player, metric, step, value in _curves(run):
        yield "curve", run.name, player, None, metric, step, value, None, None, None
    for player, _, steps, games, opponent, share, _ in _mixes(run):
        yield "opponent_mix", run.name, player, opponent, "share", steps, share, None, None, games


_TABLES = {
    "ratings": (("policy", "player", "trained_steps", "elo", "low", "high", "games"), _ratings),
    "payoff": (("home", "away", "win_rate", "low", "high", "games", "effective_games"), _payoff),
    "lineage": (("snapshot", "player", "trained_steps", "kind", "parent", "donor", "reason", "elo"), _lineage),
    "meta_game": (("policy", "nash", "advantage", "alpha_rank", "x", "y"), _meta_game),
    "yardsticks": (
        ("yardstick", "player", "snapshot", "trained_steps", "score", "low", "high", "games"),
        _yardsticks,
    ),
    "probes": (
        ("probe", "yardstick", "scale", "snapshot", "env_steps", "value", "low", "high", "games"),
        _probes,
    ),
    "curves": (("player", "metric", "env_steps", "value"), _curves),
    "opponent_mix": (("player", "snapshot", "trained_steps", "games", "opponent", "share", "score"), _mixes),
}
"""File name -> columns behind that of the run, and the rows of one run."""
