"""Metric sinks: the protocol, the registry, and opening the sinks that a run configures.

Training never waits for a sink and never fails by one: `log` returns at once, what cannot be kept is counted and
reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from envs.plugins import resolve
from league.store.storage import Storage


@dataclass(frozen=True)
class SinkContext:
    """The run's facts that a sink is built from.

    Fields:
      run_path: the run folder; a sink writes nowhere else.
      run_name: of the run, the name of its group at a tracker.
      config: the resolved configuration as plain values, without secrets.
      settings: the sink's own part of the configuration.
      metrics_bytes, spool_bytes: most that the kept metrics, and those that wait for an upload, may take on the disk.
      warn: takes one sentence for the user.
      clock: wall time, seconds since 1970, a label.
      storage: for file writes.
    """

    run_path: Path
    run_name: str
    config: Mapping[str, object]
    settings: object
    warn: Callable[[str], None]
    clock: Callable[[], float]
    storage: Storage
    metrics_bytes: int = 64 << 20
    spool_bytes: int = 64 << 20


class MetricSink(Protocol):
    """Takes numbers over time."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Keep the values of this moment; never waits for anything outside this machine, never raises.

        Args:
          step: env steps so far.
          values: metric name (see `names`) -> value; a non-finite value is left out.
        """
        ...

    def close(self) -> None:
        """Hand over what is kept, for a few seconds at most; may be called twice. `log` does nothing afterwards."""
        ...


METRIC_SINKS: Mapping[str, str] = {
    "jsonl": "league.monitor.jsonl_sink:open_jsonl_sink",
    "wandb": "league.monitor.wandb_sink:open_wandb_sink",
}
"""Name -> "module:attribute" of a function that makes the sink from a `SinkContext`."""


def open_sink(kind: str, context: SinkContext) -> MetricSink:
    """A sink of a registered kind, or of a plug-in named as "module:attribute".

    Raises:
      ValueError: no such kind.
    """
    return cast(MetricSink, resolve(kind, METRIC_SINKS, what="metric sink")(context))


class SinkGroup:
    """Several sinks as one."""

    def __init__(self, sinks: tuple[MetricSink, ...]) -> None:
        self._sinks = sinks

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """To each."""
        for sink in self._sinks:
            sink.log(step, values)

    def close(self) -> None:
        """Each, in order."""
        for sink in self._sinks:
            sink.close()
