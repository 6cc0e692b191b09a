"""The alert sink that forwards news to wandb: a line in RUN/wandb/alerts.jsonl, which the uploading process reads."""

from __future__ import annotations

import msgspec

from league.errors import StorageError
from league.run.alerts.sink import AlertContext, AlertNews, AlertSinkFailed


class TrackerSink:
    """wandb then sends an e-mail or a message, as the user has set it up there."""

    def __init__(self, context: AlertContext) -> None:
        self._path = context.run_path / "wandb" / "alerts.jsonl"
        self._storage = context.storage

    def deliver(self, news: AlertNews) -> None:
        try:
            self._storage.append_line(self._path, msgspec.json.encode(news))
        except StorageError as error:
            raise AlertSinkFailed(str(error).rstrip(".")) from error

    def close(self) -> None:
        """As in the protocol."""
