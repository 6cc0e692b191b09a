"""The static report as Markdown: the figures as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from league.envs.text.number_text import number_text
from league.run.monitor import names
from league.see.reports.figures.comparison import Comparison
from league.see.reports.figures.figures_page import Report, RunFigures
from league.see.reports.figures.meta_game import MetaGame
from league.see.reports.figures.payoff_matrix import PayoffMatrix
from league.see.reports.figures.ratings_over_time import RatingsOverTime
from league.see.reports.figures.yardsticks import YardstickFigures
from league.text_table import TextTable
from league.wording import counted

MAX_ROWS = 30
"""Rows of a table; the whole of it is in the JSON and CSV."""
MAX_COLUMNS = 10


def report_markdown(report: Report) -> str:
    """The report as one Markdown document."""
    made = datetime.fromtimestamp(report.made_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = ["# " + ", ".join(run.name for run in report.runs), "", f"Made {made} by league {report.version}.", ""]
    if report.comparison is not None:
        lines += _comparison(report.comparison)
    for run in report.runs:
        lines += _run(run, title=len(report.runs) > 1)
    return "\n".join(lines).rstrip() + "\n"


def _run(run: RunFigures, *, title: bool) -> Iterator[str]:
    if title:
        yield from (f"# Run {run.name}", "")
    amounts = ((run.games, "game"), (run.env_steps, "env step"), (run.players, "player"), (run.snapshots, "snapshot"))
    seen = ", ".join(counted(number, what) for number, what in amounts)
    yield from (f"{run.phase.capitalize()}: {seen}. Counted are {run.ratings.counts}.", "")
    yield from _ratings(run.ratings)
    yield from _yardsticks(run.yardsticks)
    yield from _payoff(run.payoff)
    yield from _meta_game(run.meta_game)
    yield from _lineage(run)
    yield from _players(run)


def _ratings(ratings: RatingsOverTime) -> Iterator[str]:
    found = [(curve.player, point) for curve in ratings.curves for point in curve.points]
    found += [("", point) for point in ratings.fixed]
    if not found:
        return
    found.sort(key=lambda item: -item[1].elo)
    yield from ("## Ratings", "")
    rows = (
        (point.policy, player, f"{point.elo:+z.0f}", f"{point.low:+z.0f} to {point.high:+z.0f}", f"{point.games:,}")
        for player, point in found
    )
    yield from _table(("policy", "player", "Elo", "95 % interval", "games"), rows, numbers=3)


def _yardsticks(found: YardstickFigures) -> Iterator[str]:
    if found.probes:
        yield from ("## Probes", "")
        yield from _table(("probe", "yardstick", "snapshot", "first", "newest", "interval"), _probes(found), numbers=3)
    if not found.curves:
        return
    yield from ("## Against yardsticks", "", "The newest snapshot of each player that has met them.", "")
    rows = (
        (
            curve.yardstick,
            (last := curve.points[-1]).snapshot,
            f"{curve.points[0].score:.2f}",
            f"{last.score:.2f}",
            f"{last.low:.2f} to {last.high:.2f}",
            f"{last.games:,}",
        )
        for curve in found.curves
    )
    heads = ("yardstick", "snapshot", "score of the first", "score", "90 % interval", "games")
    yield from _table(heads, rows, numbers=4)


def _probes(found: YardstickFigures) -> Iterator[tuple[str, ...]]:
    for curve in found.probes:
        first, last = curve.points[0], curve.points[-1]
        values = (
            number_text(first.value),
            number_text(last.value),
            f"{number_text(last.low)} to {number_text(last.high)}",
        )
        yield curve.probe, f"{curve.yardstick} ({curve.scale})", last.snapshot, *values


def _payoff(matrix: PayoffMatrix) -> Iterator[str]:
    shown = matrix.policies[:MAX_COLUMNS]
    if not matrix.cells:
        return
    rates = {(cell.row, cell.column): cell.win_rate for cell in matrix.cells}
    yield from ("## Payoff", "", "Win rates of rows against columns, strongest first.", "")
    rows = (
        (
            policy.policy,
            *(f"{rates[row, column]:.2f}" if (row, column) in rates else "" for column in range(len(shown))),
        )
        for row, policy in enumerate(shown)
    )
    yield from _table(("", *(policy.policy for policy in shown)), rows, numbers=len(shown))


def _meta_game(game: MetaGame) -> Iterator[str]:
    if not game.members:
        return
    yield from ("## Meta-game", "")
    yield from ((f"{game.text[0].upper()}{game.text[1:]}.", "") if game.text else ())
    rows = (
        (member.policy, f"{member.nash:.3f}", f"{member.advantage:+z.3f}", f"{member.alpha_rank:.3f}")
        for member in game.members[:MAX_COLUMNS]
    )
    yield from _table(("policy", "Nash", "win rate over 1/2 v Nash", "alpha-rank"), rows, numbers=3)


def _lineage(run: RunFigures) -> Iterator[str]:
    nodes = run.lineage.nodes
    if not nodes:
        return
    yield from ("## Lineage", "")
    for sentence in run.lineage.past:
        yield from (f"The league was {sentence}.", "")
    rows = (
        (node.snapshot, f"{node.trained_steps:,}", node.kind, node.parent or "", node.donor or "", node.reason)
        for node in nodes[-MAX_ROWS:]
    )
    yield from _table(("snapshot", "trained steps", "how", "parent", "donor", "reason"), rows, numbers=1)


def _players(run: RunFigures) -> Iterator[str]:
    metrics = (names.RETURN_MEAN, names.SCORE, names.EPISODE_LENGTH, names.ENTROPY, names.LAG_MEAN)
    yield from ("## Players", "", "Newest values of those that have trained most.", "")
    rows = []
    for found in run.player_curves:
        newest = {curve.metric: number_text(curve.values[-1], 4) for curve in found.curves}
        rows.append((found.player, *(newest.get(metric.of(found.player), "") for metric in metrics)))
    heads = ("player", "return", "score", "episode length", "entropy", "lag")
    yield from _table(heads, rows, numbers=len(metrics))


def _comparison(found: Comparison) -> Iterator[str]:
    yield from ("## Settings that differ", "")
    rows = ((setting.key, *setting.values) for setting in found.settings)
    yield from _table(("setting", *found.runs), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Iterator[str]:
    """A table; its last `numbers` columns stand right. More rows than `MAX_ROWS` are counted and left out."""
    listed = list(rows)
    yield from TextTable(heads, listed[:MAX_ROWS], range(len(heads) - numbers)).markdown()
    if len(listed) > MAX_ROWS:
        yield from ("", f"{len(listed) - MAX_ROWS:,} more rows are in the JSON and the CSV.")
    yield ""
