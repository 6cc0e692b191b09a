"""Alert sinks: the news that they carry, the protocol, and the registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from league.envs.component_choice import Component
from league.envs.plugin_options import component_of
from league.store.storage import Storage


@dataclass(frozen=True)
class AlertNews:
    """An alert begins, or has recovered.

    Fields:
      run: name of the run. alert: name of the condition. subject: what it is about, empty for the run itself.
      state: "firing" or "recovered". text: one sentence.
      since: wall time at which it began, at: of this news, seconds since 1970.
    """

    run: str
    alert: str
    subject: str
    state: str
    text: str
    since: float
    at: float


@dataclass(frozen=True)
class AlertContext:
    """The run's facts that a sink is built from. run_path: its folder; storage: for file writes."""

    run_path: Path
    storage: Storage


class AlertSinkFailed(Exception):  # noqa: N818
    """News could not be delivered; the message is one clause without secrets, fit for a log."""


class AlertSink(Protocol):
    """Carries news elsewhere. It is called in a thread of its own, so that it may wait; training never does."""

    def deliver(self, news: AlertNews) -> None:
        """Hand the news over, within a deadline of the sink's own.

        Raises:
          AlertSinkFailed: it was not taken; it is tried again a few times.
        """
        ...

    def close(self) -> None:
        """End what is under way, also while `deliver` waits in its thread; may be called twice."""
        ...


ALERT_SINKS: Mapping[str, str] = {
    "log": "league.run.alerts.log_sink:LogSink",
    "webhook": "league.run.alerts.webhook_sink:WebhookSink",
    "command": "league.run.alerts.command_sink:CommandSink",
    "wandb": "league.run.alerts.tracker_sink:TrackerSink",
}
"""Name -> "module:attribute" of a class that is made with an `AlertContext` and its options."""


def make_alert_sink(choice: Component, context: AlertContext, *, place: str) -> AlertSink:
    """The sink of a name and its options.

    Args:
      place: dotted path of the choice in the configuration.
    Raises:
      ValueError: there is none such, or its options do not fit; names the key.
    """
    make = component_of(choice, ALERT_SINKS, what="alert sink", place=place)
    try:
        return cast(AlertSink, make(context))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
