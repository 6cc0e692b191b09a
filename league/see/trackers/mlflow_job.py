"""The job of the process that uploads to MLflow: one line of JSON on its standard input. Holds no secret."""

from __future__ import annotations

import msgspec


class MlflowJob(msgspec.Struct):
    """One league at MLflow.

    Fields:
      run_path: the run folder. spool: file of `MetricRow` lines to upload.
      tracking_uri, experiment: where it is filed.
      name: of the league. players: those with a run of their own.
      params: dotted key -> value of the configuration.
      last_deadline_s: seconds that are left to the process once its standard input has ended.
    """

    run_path: str
    spool: str
    tracking_uri: str
    experiment: str
    name: str
    players: int
    params: dict[str, str]
    last_deadline_s: float
