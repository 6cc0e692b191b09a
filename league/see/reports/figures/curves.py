"""Metrics over env steps: of one player, of the whole run, and of several runs beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from league.run.monitor import names
from league.run.monitor.jsonl_sink import MetricRow
from league.run.monitor.names import Metric
from league.see.reports.figures.extent import spread

MAX_POINTS = 300
"""Points of a curve; of more, evenly spread rows are shown, the first and the last among them."""

RUN_METRICS = (names.BEST_RATING, names.STEPS_PER_S, names.GAMES, names.SNAPSHOTS)
PLAYER_METRICS = (
    names.RETURN_MEAN,
    names.SCORE,
    names.WIN_RATE,
    names.RATING,
    names.EPISODE_LENGTH,
    names.ENTROPY,
    names.LOSS_POLICY,
    names.LOSS_VALUE,
    names.KL,
    names.LAG_MEAN,
    names.RHO_CLIP_FRACTION,
    names.EFFECTIVE_SAMPLE_FRACTION,
    names.GRADIENT_NORM,
    names.LEARNING_RATE,
    names.ENTROPY_COST,
)

Series = Callable[[str], tuple[Sequence[float], Sequence[float]]]
"""(env steps, values) of a metric, by its reported name; empty where it was never reported."""


class Curve(msgspec.Struct, frozen=True):
    """One metric over env steps.

    Fields:
      metric: reported name. label: its last part. unit, meaning: as in `league.run.monitor.names`.
      steps, values: the points.
    """

    metric: str
    label: str
    unit: str
    meaning: str
    steps: tuple[float, ...]
    values: tuple[float, ...]


class PlayerCurves(msgspec.Struct, frozen=True):
    """All that a player reports over time; metrics without a value are left out."""

    player: str
    curves: tuple[Curve, ...]


def player_curves(series: Series, player: str) -> PlayerCurves:
    """The curves of one player."""
    return PlayerCurves(player, _curves(series, PLAYER_METRICS, player))


def run_curves(series: Series) -> tuple[Curve, ...]:
    """The curves of the whole run."""
    return _curves(series, RUN_METRICS, "")


def series_of(rows: Iterable[MetricRow]) -> Series:
    """Look-up of the metrics in rows, oldest first."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        for name, value in row.values.items():
            steps, values = found.setdefault(name, ([], []))
            steps.append(float(row.step))
            values.append(value)
    return lambda name: found.get(name, ((), ()))


def _curves(series: Series, metrics: Iterable[Metric], player: str) -> tuple[Curve, ...]:
    curves = []
    for metric in metrics:
        name = metric.of(player)
        steps, values = series(name)
        chosen = spread(len(steps), MAX_POINTS)
        if chosen:
            label = name.rpartition("/")[2].removesuffix("_elo").replace("_", " ").replace("per s", "per second")
            points = tuple(float(steps[n]) for n in chosen), tuple(float(values[n]) for n in chosen)
            curves.append(Curve(name, label, metric.unit, metric.meaning, *points))
    return tuple(curves)
