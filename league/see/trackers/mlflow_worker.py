"""The process that hands a run's metrics to MLflow: `python -m league.see.trackers.mlflow_worker`.

It may block, fail or hang as the server does; no other process waits for it. While the server cannot be reached the
rows stay in the spool, and it tries again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from league.policies.auto_export import BEST
from league.run.monitor.spool import SpoolReader
from league.see.trackers.best_snapshot import best_snapshot
from league.see.trackers.mlflow_job import MlflowJob
from league.see.trackers.player_rows import player_rows
from league.see.trackers.uploading import say, serve
from league.store.storage import Storage

POLL_INTERVAL_S, RETRY_S = 1.0, 10.0
MAX_METRICS, MAX_PARAMS = 1_000, 100
"""Metrics and parameters in one request, by MLflow's REST API."""
BEST_TAG = "league.best"
_MAX_IDS_BYTES = 1 << 20
_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_ALLOW_FILE_STORE": "true",  # a `file:` address is the user's own choice
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Settings of MLflow's client, where the user has none."""


class MlflowRuns:
    """The runs of a league: its own, and those of its players below it. Their ids are kept in the run folder."""

    def __init__(self, job: MlflowJob, *, storage: Storage) -> None:
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._metric, self._param = Metric, Param
        self._job = job
        self._storage = storage
        self._path = Path(job.run_path) / "mlflow" / "runs.json"
        self._client = MlflowClient(tracking_uri=job.tracking_uri)
        found = self._client.get_experiment_by_name(job.experiment)
        self._experiment = self._client.create_experiment(job.experiment) if found is None else found.experiment_id
        self._ids = self._read_ids()
        self._open: set[str] = set()
        self._league = self._run_of("", parent=None)

    def log(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """A row of metrics: whole to the run of the league, and to each player's its own."""
        self._log(self._league, step, time, values)
        for player, own in player_rows(values).items():
            if player in self._ids or len(self._ids) <= self._job.players:
                self._log(self._run_of(player, parent=self._league), step, time, own)

    def finish(self) -> None:
        """The runs are over, until the next start; the best snapshot goes to the league's."""
        try:
            self._send_best()
        except Exception as error:  # process boundary: a server may keep no files, and the metrics are there
            say("note", f"the best snapshot could not be sent ({type(error).__name__})")
        for run_id in self._open:
            self._client.set_terminated(run_id)

    def _send_best(self) -> None:
        best = best_snapshot(Path(self._job.run_path))
        if best is None or self._client.get_run(self._league).data.tags.get(BEST_TAG) == best.name:
            return
        for file in best.files:
            self._client.log_artifact(self._league, str(file), artifact_path=f"{BEST}/{best.name}")
        self._client.set_tag(self._league, BEST_TAG, best.name)

    def _log(self, run_id: str, step: int, time: float, values: Mapping[str, float]) -> None:
        at = int(1000 * time)
        metrics = [self._metric(name, value, at, step) for name, value in values.items()]
        for first in range(0, len(metrics), MAX_METRICS):
            self._client.log_batch(run_id, metrics=metrics[first : first + MAX_METRICS])

    def _run_of(self, player: str, *, parent: str | None) -> str:
        """The id of the league's run ("") or a player's; made at first, opened again after a stop."""
        if player not in self._ids:
            self._ids[player] = self._made(player, parent)
            self._storage.atomic_write_bytes(self._path, msgspec.json.encode(self._ids))
            self._open.add(self._ids[player])
        elif self._ids[player] not in self._open:
            self._client.update_run(self._ids[player], status="RUNNING")
            self._open.add(self._ids[player])
        return self._ids[player]

    def _made(self, player: str, parent: str | None) -> str:
        tags = {"league": self._job.name}
        if parent is not None:
            tags |= {"mlflow.parentRunId": parent, "player": player}
        run = self._client.create_run(self._experiment, run_name=player or self._job.name, tags=tags)
        run_id = str(run.info.run_id)
        params = [self._param(key, value) for key, value in self._job.params.items()] if parent is None else []
        for first in range(0, len(params), MAX_PARAMS):
            self._client.log_batch(run_id, params=params[first : first + MAX_PARAMS])
        return run_id

    def _read_ids(self) -> dict[str, str]:
        try:
            payload = self._storage.read_bytes(self._path, max_bytes=_MAX_IDS_BYTES)
            return msgspec.json.decode(payload, type=dict[str, str])
        except (FileNotFoundError, msgspec.MsgspecError):
            return {}


def upload(make_runs: Callable[[], Any], reader: SpoolReader, stop: threading.Event) -> None:
    """Hand rows over until `stop` is set and the spool is read to its end, or the server is away by then."""
    runs: Any = None
    rows: list[tuple[int, float, dict[str, float]]] = []  # not handed over yet
    while True:
        stopping = stop.is_set()  # before the read: rows written before the stop are all seen
        rows = rows or reader.rows()
        is_end = not rows
        try:
            if runs is None:
                runs = make_runs()
                say("ready", "")
            while rows:
                runs.log(*rows[0])
                del rows[0]
        except Exception as error:  # process boundary: whatever MLflow raises must end as a sentence
            say("warning", f"the server could not be reached ({type(error).__name__})")
            if stopping:
                return
            stop.wait(RETRY_S)
            continue
        if not is_end:
            reader.keep_place()
        elif stopping:
            runs.finish()
            return
        else:
            stop.wait(POLL_INTERVAL_S)


def work(line: bytes, watched: Callable[[float], threading.Event]) -> None:
    """Serve one job."""
    job = msgspec.json.decode(line, type=MlflowJob)
    stop = watched(job.last_deadline_s)
    storage = Storage()
    upload(lambda: MlflowRuns(job, storage=storage), SpoolReader(Path(job.spool), storage=storage), stop)


if __name__ == "__main__":
    sys.exit(serve(work))
