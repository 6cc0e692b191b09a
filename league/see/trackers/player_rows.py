"""Splits a row of metrics into those of each player, named alike for all of them."""

from __future__ import annotations

from collections.abc import Mapping

from league.run.monitor.names import metric_of

_OF_PLAYERS = ("player", "learner")


def player_rows(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Player -> its metrics without its own name, so that one chart shows the same metric of several players.

    `learner/main-0/entropy` becomes `learner/entropy`, and `player/main-0/versus/main-1` becomes
    `player/versus/main-1`.
    """
    rows: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        kind, _, rest = name.partition("/")
        player, _, metric = rest.partition("/")
        if kind in _OF_PLAYERS and metric:
            rows.setdefault(player, {})[f"{kind}/{metric}"] = value
    return rows


def summary_of(name: str) -> str:
    """wandb's summary of a metric: its best value beside its last one, where its best is worth keeping; else empty."""
    metric = metric_of(name)
    return f"{metric.best},last" if metric is not None and metric.best else ""
