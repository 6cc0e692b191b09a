"""Looks at the alert conditions of a run: each alert is reported once, and once more when it has recovered."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from league.config.run_config import AlertsConfig
from league.envs.component_choice import kind_of
from league.errors import ConfigError
from league.run.alerts.condition import AlertInputs, Condition, make_condition
from league.run.alerts.sink import AlertContext, AlertNews, AlertSink, AlertSinkFailed, make_alert_sink
from league.store.run_folder import AlertStatus, RunFolder
from league.store.storage import Storage

LOOK_EVERY_S = 5.0


class AlertWatch:
    """Asks every condition every few seconds and tells the couriers what is new.

    Args:
      run: its name. conditions: by name.
      say: tells the user one sentence.
      wall_time: seconds since 1970, a label.
    """

    def __init__(
        self,
        run: str,
        conditions: Mapping[str, Condition],
        couriers: Sequence[Courier],
        *,
        say: Callable[[str], object],
        wall_time: Callable[[], float] = time.time,
    ) -> None:
        self._run = run
        self._conditions = dict(conditions)
        self._couriers = couriers
        self._say = say
        self._wall_time = wall_time
        self._due = -float("inf")
        self._firing: dict[tuple[str, str], AlertStatus] = {}

    @property
    def firing(self) -> tuple[AlertStatus, ...]:
        """The alerts that have not recovered, oldest first."""
        return tuple(self._firing.values())

    def look(self, seen: AlertInputs) -> None:
        """Ask every condition, where it is time to; returns at once."""
        if seen.now < self._due:
            return
        self._due = seen.now + LOOK_EVERY_S
        for name, condition in list(self._conditions.items()):
            try:
                found = dict(condition.check(seen))
            except Exception as error:  # boundary: a condition may be code of others, and an alert may end no run
                del self._conditions[name]
                self._say(f"The alert condition {name} failed and is not looked at any more: {error!r:.300}.")
                continue
            self._compare(name, found)
        for courier in self._couriers:
            for sentence in courier.troubles():
                self._say(sentence)

    def close(self) -> None:
        """Hand over what waits, for a few seconds at most; may be called twice."""
        for courier in self._couriers:
            courier.close()

    def _compare(self, name: str, found: Mapping[str, str]) -> None:
        for subject, text in found.items():
            if (name, subject) not in self._firing:
                status = self._firing[name, subject] = AlertStatus(name, subject, text, self._wall_time())
                self._tell(status, "firing", f"Alert {name}: {text}.")
        for key, status in list(self._firing.items()):
            if key[0] == name and key[1] not in found:
                del self._firing[key]
                self._tell(status, "recovered", f"Alert {name} has recovered. It was: {status.text}.")

    def _tell(self, status: AlertStatus, state: str, sentence: str) -> None:
        self._say(sentence)
        news = AlertNews(self._run, status.alert, status.subject, state, sentence, status.since, self._wall_time())
        for courier in self._couriers:
            courier.send(news)


def require_working_alerts(config: AlertsConfig, *, source: str) -> None:
    """Refuse conditions and sinks that cannot be made.

    Raises:
      ConfigError: naming each problem.
    """
    _made(config, AlertContext(Path(), Storage()), source=source)


def open_alerts(config: AlertsConfig, folder: RunFolder, *, say: Callable[[str], object]) -> AlertWatch:
    """The watch of a run, with a thread for each sink.

    Raises:
      ConfigError: a condition or sink cannot be made.
    """
    context = AlertContext(folder.path, folder.storage)
    conditions, sinks = _made(config, context, source=str(folder.config_path))
    couriers = [Courier(kind, sink) for kind, sink in sinks]
    return AlertWatch(folder.path.name, conditions, couriers, say=say)


def _made(
    config: AlertsConfig, context: AlertContext, *, source: str
) -> tuple[dict[str, Condition], list[tuple[str, AlertSink]]]:
    problems: list[str] = []
    conditions: dict[str, Condition] = {}
    sinks: list[tuple[str, AlertSink]] = []
    for number, choice in enumerate(config.conditions):
        try:
            conditions[kind_of(choice)] = make_condition(choice, place=f"alerts.conditions.{number}")
        except ValueError as error:
            problems.append(str(error))
    for number, choice in enumerate(config.sinks):
        try:
            sinks.append((kind_of(choice), make_alert_sink(choice, context, place=f"alerts.sinks.{number}")))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError(source, problems)
    return conditions, sinks


MAX_WAITING = 100
"""News that may wait for a sink; further ones are dropped and counted."""

PAUSES_S = (1.0, 10.0)
"""Pauses before a failed delivery is tried again; after these it is given up."""

CLOSE_S = 2.0
"""Longest wait, at the end of a run, for news that are under way."""


class Courier:
    """One sink and its thread. kind: name of the sink, for messages."""

    def __init__(self, kind: str, sink: AlertSink, *, pauses_s: tuple[float, ...] = PAUSES_S) -> None:
        self._kind = kind
        self._sink = sink
        self._pauses_s = pauses_s
        self._waiting: queue.Queue[AlertNews | None] = queue.Queue(MAX_WAITING)
        self._stopping = threading.Event()
        self._troubles: deque[str] = deque(maxlen=MAX_WAITING)
        self._thread = threading.Thread(target=self._work, name=f"alerts-{kind}", daemon=True)
        self._thread.start()

    def send(self, news: AlertNews) -> None:
        """Have the news delivered; returns at once."""
        try:
            self._waiting.put_nowait(news)
        except queue.Full:
            self._troubles.append(f"The alert sink {self._kind} is too slow: news of {news.alert} were dropped.")

    def troubles(self) -> list[str]:
        """Sentences on what went wrong since the last call."""
        return [self._troubles.popleft() for _ in range(len(self._troubles))]

    def close(self, *, wait_s: float = CLOSE_S) -> None:
        """Deliver what waits within `wait_s` seconds, then give it up; may be called twice."""
        if not self._stopping.is_set():
            until = time.monotonic() + wait_s
            with contextlib.suppress(queue.Full):
                self._waiting.put(None, timeout=wait_s)  # a full queue has no room for the end yet
                self._thread.join(max(until - time.monotonic(), 0.0))
            self._stopping.set()
            self._sink.close()

    def _work(self) -> None:
        while not self._stopping.is_set():
            news = self._waiting.get()
            if news is None:
                return
            self._deliver(news)

    def _deliver(self, news: AlertNews) -> None:
        for pause_s in (*self._pauses_s, None):
            try:
                self._sink.deliver(news)
            except Exception as error:  # boundary: a sink may be code of others, and nothing of it may end the thread
                reason = str(error) if isinstance(error, AlertSinkFailed) else type(error).__name__
            else:
                return
            if pause_s is None or self._stopping.wait(pause_s):
                self._troubles.append(f"The alert sink {self._kind} did not take news of {news.alert}: {reason}.")
                return
