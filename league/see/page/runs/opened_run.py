"""A run that the page has open: its league, heartbeat and metrics, each read once and extended as the run proceeds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, cast

from league.config.yaml import parse_yaml
from league.core.metagame.ratings import RatingInputs, RatingRow, rate, rating_inputs
from league.core.state.state import LeagueState
from league.errors import LeagueError
from league.see.page.runs.background import Background, Computed
from league.see.page.runs.journal_fold import JournalFold, NotableEvent, notable_events, open_journal
from league.see.page.runs.metric_history import MetricHistory
from league.store.journal_reader import JournalReader
from league.store.run_folder import RunAccount, RunFolder

FOLLOW_S = 1.0
"""Seconds between two looks at the files while somebody watches."""
IDLE_S = 10.0
"""The same while nobody does: a request then finds little that is new."""

Inputs = TypeVar("Inputs")
T = TypeVar("T")


class OpenedRun:
    """One run. What it reads is shared by all requests: hold `lock` while reading `state` or `notable`.

    Args:
      folder: of the run. identity: its name in addresses.
      pool: for computations beside the requests.

    Fields:
      lock: held by the server round every section's `read`.
      metrics: see there; complete once the thread that follows the run has read the file.
    """

    def __init__(self, folder: RunFolder, identity: str, *, pool: ThreadPoolExecutor) -> None:
        self.folder, self.id = folder, identity
        self.lock = threading.RLock()
        self.metrics = MetricHistory(folder.metrics_path)
        self._fold = JournalFold(folder)
        self._news = {"seq": self._fold.seq, "status": 0, "metrics": 0, "computed": 0}
        self._background = Background(pool, ready=lambda: self._note("computed"))
        self._watchers = 0
        self._stop, self._wake = threading.Event(), threading.Event()
        self._status = folder.read_status()
        self.trouble = ""
        self._config: tuple[str, Mapping[str, object]] | None = None

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path

    @property
    def state(self) -> LeagueState:
        """The league up to event `seq`; to be read only, and under the lock."""
        return self._fold.state

    @property
    def seq(self) -> int:
        """Number of the last event in `state`."""
        return self._fold.seq

    @property
    def notable(self) -> list[NotableEvent]:
        """Events that are not routine, oldest first."""
        return self._fold.notable

    @property
    def has_history(self) -> bool:
        """True once `notable` reaches back to the first event."""
        return self._fold.has_history

    @property
    def account(self) -> RunAccount:
        """The daemon of the run, as in `league status`."""
        return self.folder.account_of(self._status)

    @property
    def ratings(self) -> Computed[tuple[RatingRow, ...]]:
        """Ratings of all frozen policies, strongest first."""
        return self.background("ratings", lambda: rating_inputs(self.state), _rate)

    @property
    def news(self) -> dict[str, int]:
        """Counters that grow with each change: of events, heartbeats, rows of metrics, and results of computations."""
        return dict(self._news)

    @property
    def config(self) -> Mapping[str, object]:
        """The configuration as plain values, as of the last event; empty where it cannot be read."""
        text = self.state.config_text
        if self._config is None or self._config[0] != text:
            try:
                plain = parse_yaml(text or self.folder.read_config(), source="config.yaml")
            except LeagueError:
                plain = {}
            self._config = (text, plain if isinstance(plain, dict) else {})
        return self._config[1]

    def journal(self) -> JournalReader:
        """A reader of its own for the journal; close it."""
        return open_journal(self.folder)

    def background(
        self, key: str, inputs: Callable[[], Inputs], function: Callable[[Inputs], T], *, every_s: float = 2.0
    ) -> Computed[T]:
        """The newest result of a computation, which is repeated beside the requests as the journal grows.

        Args:
          key: names the computation and its parameters. inputs: makes a copy of what it needs, at once.
          function: computes from that, in another thread and without the lock.
          every_s: least time between two of them.
        """
        found = self._background.get(key, self.seq, inputs, cast(Callable[[object], object], function), every_s)
        return cast(Computed[T], found)

    def refresh(self) -> None:
        """Take in the events and the heartbeat that are new."""
        with self.lock:
            try:
                if self._fold.extend():
                    self._news["seq"] = self._fold.seq
                status = self.folder.read_status()
                self.trouble = ""
            except LeagueError as error:
                self.trouble = str(error)
                return
        if status != self._status:
            self._status = status
            self._note("status")

    def watch(self) -> None:
        """Somebody watches from now on."""
        with self.lock:
            self._watchers += 1
        self._wake.set()

    def unwatch(self) -> None:
        """Takes one `watch` back."""
        with self.lock:
            self._watchers -= 1

    def start(self) -> None:
        """Begin to follow the run in a thread."""
        threading.Thread(target=self._follow, name=f"follow-{self.id}", daemon=True).start()

    def close(self) -> None:
        """End the thread; the files are closed with it."""
        self._stop.set()
        self._wake.set()

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            if self.metrics.extend():
                self._note("metrics")
            self._read_history()
            self._wake.wait(FOLLOW_S if self._watchers else IDLE_S)
            self._wake.clear()
        with self.lock:
            self._fold.close()

    def _read_history(self) -> None:
        with self.lock:
            has_history, to_seq = self._fold.has_history, self._fold.first_fold
        if has_history or self.trouble:
            return
        try:
            older = notable_events(self.folder, to_seq, self._stop)
        except LeagueError as error:
            self.trouble = str(error)
            return
        with self.lock:
            self._fold.take_history(older, to_seq)
        self._note("computed")

    def _note(self, what: str) -> None:
        with self.lock:
            self._news[what] += 1


def _rate(inputs: RatingInputs | None) -> tuple[RatingRow, ...]:
    return () if inputs is None else rate(inputs)
