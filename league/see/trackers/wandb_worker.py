"""The process that hands a run's metrics, tables and models to wandb: `python -m league.see.trackers.wandb_worker`.

It may block, fail or hang as wandb does; no other process waits for it. When its standard input ends it has a few
seconds left.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from league.run.monitor.names import ELAPSED_S
from league.run.monitor.spool import SpoolReader
from league.see.trackers.chronicle import GateDecision
from league.see.trackers.identity import line_id
from league.see.trackers.journal_feed import JournalFeed
from league.see.trackers.uploading import say, serve
from league.see.trackers.wandb_content import WandbContent
from league.see.trackers.wandb_job import WandbJob
from league.see.trackers.wandb_models import WandbModels
from league.see.trackers.wandb_runs import WandbRuns, keep_files_in
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage

POLL_INTERVAL_S = 1.0
TABLES_EVERY_S, TABLES_GROWTH = 30.0, 1.15
"""Tables are sent when the time of training is so many times what it was at the last ones, and so many seconds more:
wandb keeps a file for each. A month of training sends about 70."""


class Uploader:
    """Hands over what is spooled and what the journal holds, until it has to stop and nothing is left."""

    def __init__(self, wandb: Any, job: WandbJob, *, storage: Storage) -> None:
        run_path = Path(job.run_path)
        self._run_path = run_path
        self._reader = SpoolReader(Path(job.spool), storage=storage)
        self._feed = JournalFeed(run_path, storage=storage)
        self._feed.catch_up()
        job.run_id = line_id(job.run_id, self._feed.chronicle.rewound)
        self._decisions: list[GateDecision] = []
        self.runs = WandbRuns(wandb, job, say=say, roles=self._role_of, storage=storage)
        self._content = WandbContent(wandb, self.runs)
        store = LocalSnapshotStore(run_path / "snapshots", storage=storage)
        self._models = WandbModels(wandb, self.runs, job, store, say=say)
        self._step = 0
        self._elapsed_s = 0.0

    def upload(self, stop: threading.Event) -> None:
        """Return when `stop` is set and the spool is read to its end."""
        while True:
            stopping = stop.is_set()  # before the read: rows written before the stop are all seen
            rows = self._reader.rows()
            for step, time, values in rows:
                self.runs.log(step, time, values)
                self._step, self._elapsed_s = step, values.get(ELAPSED_S.name, self._elapsed_s)
            if rows:
                self._reader.keep_place()
            self._tell(is_last=stopping and not rows)
            if rows:
                continue
            if stopping:
                return
            stop.wait(POLL_INTERVAL_S)

    def finish(self) -> None:
        """End the runs at wandb."""
        self._feed.close()
        self.runs.finish()

    def _role_of(self, player: str) -> str:
        """Its role; the journal is read on for a player that has only just joined, whose first row is here already."""
        if player not in self._feed.chronicle.roles:
            self._decisions += self._feed.poll()
        return self._feed.chronicle.roles.get(player, "")

    def _tell(self, *, is_last: bool) -> None:
        """Send the news of journal and folder, and tables where they are due."""
        told = self._feed.told
        decisions, self._decisions = [*self._decisions, *self._feed.poll()], []
        self._content.gates(decisions)
        alerts = self._content.alerts(self._run_path / "wandb" / "alerts.jsonl", told.alerts_bytes)
        news = bool(decisions) or alerts != told.alerts_bytes
        told.alerts_bytes = alerts
        due = max(TABLES_EVERY_S + told.elapsed_s, TABLES_GROWTH * told.elapsed_s)
        if self._elapsed_s >= due or (is_last and self._feed.seq > told.shown_seq):
            self._send_tables(is_last=is_last)
            told.elapsed_s, told.tables_seq = self._elapsed_s, self._feed.seq
            told.shown_seq = self._feed.seq if is_last else told.shown_seq
            news = True
        if news:
            self._feed.keep()

    def _send_tables(self, *, is_last: bool) -> None:
        told, state = self._feed.told, self._feed.state()
        if state is None or not state.players:
            return
        ratings = self._content.tables(self._step, state, self._feed.chronicle, is_last=is_last)
        if self._content.without_pictures:
            say("note", self._content.without_pictures)
        self._models.send(state, ratings, told.models)
        told.replays = self._content.replays(self._run_path / "replays", self._step, told.replays)


def work(line: bytes, watched: Callable[[float], threading.Event]) -> None:
    """Serve one job."""
    job = msgspec.json.decode(line, type=WandbJob)
    stop = watched(job.last_deadline_s)
    keep_files_in(Path(job.run_path))
    import wandb

    uploader = Uploader(wandb, job, storage=Storage())
    say("ready", "")
    uploader.upload(stop)
    uploader.finish()


if __name__ == "__main__":
    sys.exit(serve(work))
