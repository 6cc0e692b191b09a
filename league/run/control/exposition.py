"""The newest metrics of a run in the text format of Prometheus.

Names follow its conventions: `league_` before all, units at the end, `_total` for counts that only grow, and the
player and seat as labels. Source: prometheus.io/docs/practices/naming.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from league.run.monitor import names
from league.run.monitor.jsonl_sink import last_row
from league.run.monitor.names import Metric, metric_of
from league.store.run_folder import RunFolder

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTERS = {
    metric.name
    for metric in (
        names.ENV_STEPS,
        names.SETTLING_STEPS,
        names.GAMES,
        names.ABORTED,
        names.TRUNCATED,
        names.JOURNAL_SEQ,
        names.ELAPSED_S,
    )
}
"""Metrics that only grow over the life of a run, restarts included."""

ALERT_LABELS = ["alert", "subject"]
_UNITS = {"s": "seconds", "Elo": "elo", "nats": "nats"}
_SEAT = re.compile(r"seat_([0-9]+)\Z")


def exposition(folder: RunFolder) -> bytes:
    """The heartbeat and the newest row of metrics.jsonl of a run, for a scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(folder))
    return generate_latest(registry)


class _Snapshot(Collector):
    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """The families, one for each metric."""
        status = self._folder.read_status()
        if status is not None:
            age = max(time.time() - status.heartbeat_at, 0.0)
            yield GaugeMetricFamily("league_heartbeat_age_seconds", "time since the daemon last wrote", value=age)
            up = GaugeMetricFamily("league_phase", "1 for the phase that the run is in", labels=["phase"])
            up.add_metric([status.phase], 1.0)
            yield up
            alerts = GaugeMetricFamily("league_alert", "1 for each alert that has not recovered", labels=ALERT_LABELS)
            for alert in status.alerts:
                alerts.add_metric([alert.alert, alert.subject], 1.0)
            yield alerts
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        row = last_row(self._folder.metrics_path)
        for name, value in () if row is None else row.values.items():
            metric = metric_of(name)
            if metric is None:
                continue
            labels = labels_of(name)
            family = families.get(metric.name)
            if family is None:
                kind = CounterMetricFamily if metric.name in COUNTERS else GaugeMetricFamily
                family = families[metric.name] = kind(prometheus_name(metric), metric.meaning, labels=list(labels))
            family.add_metric(list(labels.values()), value)
        yield from families.values()


def prometheus_name(metric: Metric) -> str:
    """The name of a metric, without the `_total` that the library adds to counters."""
    parts = [part for part in metric.name.split("/") if "{" not in part]
    name = "_".join(parts if parts[0] == "league" else ["league", *parts])
    if "seat" in metric.name:
        name = name.replace("_return_mean", "_seat_return_mean")
    unit = _UNITS.get(metric.unit, "")
    if name.endswith("_s") and unit:
        name = name.removesuffix("_s")
    return name if not unit or name.endswith(unit) else f"{name}_{unit}"


def labels_of(name: str) -> dict[str, str]:
    """The player or yardstick, and the seat, in a reported name."""
    parts = name.split("/")
    what = "yardstick" if parts[0] == "probe" else "player"
    labels = {what: parts[1]} if len(parts) > 2 else {}
    seat = _SEAT.match(parts[2]) if len(parts) == 4 else None
    return labels if seat is None else {**labels, "seat": seat[1]}
