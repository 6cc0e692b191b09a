"""Opens the metric sinks of a run, and checks those, its alerts and its probes before there is a run."""

from __future__ import annotations

import time
from collections.abc import Callable

from league.config.commented import reasons_in
from league.config.run_config import RunConfig, config_plain
from league.errors import ConfigError
from league.judge.probes.probe import make_probes
from league.run.alerts.watch import require_working_alerts
from league.run.monitor.sink import (
    METRIC_SINKS,
    SinkContext,
    SinkGroup,
    check_plugin_sink,
    open_plugin_sink,
    open_sink,
)
from league.store.run_folder import RunFolder


def require_working_sinks(config: RunConfig, *, source: str) -> None:
    """Refuses metric sinks of the user's own that cannot be called, and alerts and probes that cannot be made.

    Raises:
      ConfigError: naming each.
    """
    problems = []
    for index, sink in enumerate(config.monitor.sinks):
        try:
            check_plugin_sink(sink, place=f"monitor.sinks.{index}")
        except ValueError as error:
            problems.append(str(error))
    try:
        make_probes(config.probes.kinds)
    except ValueError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError(source, problems)
    require_working_alerts(config.alerts, source=source)


def open_sinks(config: RunConfig, folder: RunFolder, *, say: Callable[[str], None]) -> SinkGroup:
    """Opens the sinks that every run has, and those of the user's own. say: tells the user one sentence."""
    context = SinkContext(
        run_path=folder.path,
        run_name=folder.path.name,
        config=config_plain(config),
        settings=config.wandb,
        warn=say,
        clock=time.time,
        storage=folder.storage,
        metrics_bytes=round(config.retention.metrics_mib * 2**20),
        spool_bytes=round(config.retention.spool_mib * 2**20),
        reasons=reasons_in(folder.read_config()),
    )
    own = tuple(open_plugin_sink(sink, context) for sink in config.monitor.sinks)
    return SinkGroup((*(open_sink(kind, context) for kind in METRIC_SINKS), *own))
