"""The MLflow sink: spools rows and starts the process that uploads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from league.run.monitor.sink import SinkContext
from league.run.monitor.spool import Spool
from league.see.trackers import uploading_sink
from league.see.trackers.mlflow_job import MlflowJob
from league.see.trackers.uploading_sink import UploadingSink

MAX_PARAM = 500
"""Characters of a value that MLflow keeps for certain."""


@dataclass(frozen=True)
class MlflowConfig:
    """Options.

    Fields:
      tracking_uri: of the server; empty takes the environment variable MLFLOW_TRACKING_URI.
      experiment: name there. players: those with a run of their own below the league's.
    """

    tracking_uri: str = ""
    experiment: str = "league"
    players: int = 16

    def problems(self) -> Iterator[str]:
        if not self.address:
            yield "tracking_uri: give it, or set the environment variable MLFLOW_TRACKING_URI"
        if not self.experiment:
            yield "experiment: it has no name"

    @property
    def address(self) -> str:
        """The URI; empty where none is given."""
        return self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI", "")


def open_mlflow_sink(context: SinkContext, options: MlflowConfig) -> UploadingSink:
    """The sink, started."""
    folder = context.run_path / "mlflow"
    context.storage.make_folder(folder)
    job = MlflowJob(
        run_path=str(context.run_path),
        spool=str(folder / "spool.jsonl"),
        tracking_uri=options.address,
        experiment=options.experiment,
        name=context.run_name,
        players=options.players,
        params=dict(flat_params(context.config)),
        last_deadline_s=uploading_sink.CLOSE_DEADLINE_S + uploading_sink.LAST_DEADLINE_S,
    )
    spool = Spool(
        folder / "spool.jsonl",
        storage=context.storage,
        clock=context.clock,
        warn=context.warn,
        max_bytes=context.spool_bytes,
    )
    sink = UploadingSink(
        "mlflow",
        module="league.see.trackers.mlflow_worker",
        job=msgspec.json.encode(job),
        later="The next `league resume` uploads them.",
        spool=spool,
        warn=context.warn,
        close_deadline_s=uploading_sink.CLOSE_DEADLINE_S,
    )
    sink.start()
    return sink


def flat_params(config: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key -> value as text, of every single setting; lists are one value each."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from flat_params(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)[:MAX_PARAM]
