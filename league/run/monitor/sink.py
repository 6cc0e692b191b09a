"""Metric sinks: the protocol, the registry, and opening the sinks that a run configures.

Training never waits for a sink and never fails by one: `log` returns at once, what cannot be kept is counted and
reported once.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from league import higher_wings
from league.envs.component_choice import Component, kind_of
from league.envs.plugin_options import component_of
from league.envs.plugins import install_extra, resolve
from league.errors import LeagueError
from league.store.storage import Storage


@dataclass(frozen=True)
class SinkContext:
    """The run's facts that a sink is built from.

    Fields:
      run_path: the run folder; a sink writes nowhere else.
      run_name: of the run, the name of its group at a tracker.
      config: the resolved configuration as plain values, without secrets.
      settings: the sink's own part of the configuration.
      reasons: dotted key -> reason, of the settings that were chosen for the run.
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
    reasons: Mapping[str, str] = field(default_factory=dict)


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
    "jsonl": "league.run.monitor.jsonl_sink:open_jsonl_sink",
    **higher_wings.METRIC_SINKS,
}
"""Name -> "module:attribute" of a function that makes the sink from a `SinkContext`."""


OPTIONAL_SINKS: Mapping[str, str] = higher_wings.OPTIONAL_SINKS
"""As `METRIC_SINKS`, of those that `monitor.sinks` may name: made with their options as well. Each needs the package of
its name, which the extra of the same name brings."""


def open_sink(kind: str, context: SinkContext) -> MetricSink:
    """Opens a sink of a registered kind.

    Raises:
      ValueError: no such kind.
    """
    return cast(MetricSink, resolve(kind, METRIC_SINKS, what="metric sink")(context))


def check_plugin_sink(sink: Component, *, place: str) -> None:
    """Refuses a sink that cannot be loaded or does not take its options, without calling it.

    Args:
      place: dotted path of the sink in the configuration.
    Raises:
      ValueError: with the reason.
    """
    kind = kind_of(sink)
    if kind in METRIC_SINKS:
        raise ValueError(f"{place}: the sink {kind!r} is always open; name another or one of your own")
    if kind in OPTIONAL_SINKS and importlib.util.find_spec(kind) is None:
        raise ValueError(f"{place}: the sink {kind!r} needs a package that is not there; {install_extra(kind)}")
    component_of(sink, OPTIONAL_SINKS, what="metric sink", place=place)


def open_plugin_sink(sink: Component, context: SinkContext) -> MetricSink:
    """Opens a sink that the configuration names; whatever it raises later is reported once and does not end the run.

    Args:
      sink: a name of `OPTIONAL_SINKS`, "module:attribute" or "path/file.py:attribute", called with the context and its
        options.
    Raises:
      LeagueError: it raised when it was called.
    """
    kind = kind_of(sink)
    try:
        made = component_of(sink, OPTIONAL_SINKS, what="metric sink", place="monitor.sinks")(context)
    except Exception as error:  # code of others: whatever it raises is its mistake, not ours
        raise LeagueError(f"the metric sink {kind!r} cannot be opened: {type(error).__name__}: {error}") from error
    return GuardedSink(kind, cast(MetricSink, made), warn=context.warn)


class GuardedSink:
    """A sink of the user's own that cannot end a run: at its first exception it is reported and left out."""

    def __init__(self, kind: str, sink: MetricSink, *, warn: Callable[[str], None]) -> None:
        self._kind = kind
        self._sink = sink
        self._warn = warn
        self._failed = False

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if not self._failed:
            self._call(lambda: self._sink.log(step, values))

    def close(self) -> None:
        self._call(self._sink.close)

    def _call(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # code of others: whatever it raises is its mistake, not ours
            if not self._failed:
                self._warn(f"The metric sink {self._kind} failed and gets no more values: {error!r}.")
            self._failed = True


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
