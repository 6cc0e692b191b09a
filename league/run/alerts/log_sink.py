"""The alert sink that writes a line for each news to RUN/logs/alerts.log."""

from __future__ import annotations

from datetime import datetime

from league.errors import StorageError
from league.run.alerts.sink import AlertContext, AlertNews, AlertSinkFailed


class LogSink:
    """`league logs RUN --host alerts` shows it."""

    def __init__(self, context: AlertContext) -> None:
        self._path = context.run_path / "logs" / "alerts.log"
        self._storage = context.storage

    def deliver(self, news: AlertNews) -> None:
        when = datetime.fromtimestamp(news.at).isoformat(sep=" ", timespec="seconds")
        line = f"{when} {news.state} {news.alert}: {news.text}".replace("\n", " ")
        try:
            self._storage.append_line(self._path, line.encode())
        except StorageError as error:
            raise AlertSinkFailed(str(error).rstrip(".")) from error

    def close(self) -> None:
        """As in the protocol."""
