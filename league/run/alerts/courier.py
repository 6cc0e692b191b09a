"""Delivers the news of one alert sink from a thread of its own, so that a sink that hangs costs the run nothing."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque

from league.run.alerts.sink import AlertNews, AlertSink, AlertSinkFailed

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
