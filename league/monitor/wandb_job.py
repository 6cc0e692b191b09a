"""The job of the process that uploads to wandb: one line of JSON on its standard input. Holds no secret."""

from __future__ import annotations

import msgspec


class WandbJob(msgspec.Struct):
    """One run at wandb.

    Fields:
      run_path: the run folder; wandb writes under its `wandb` folder.
      spool: file of `MetricRow` lines to upload.
      mode: "online" or "offline".
      project, entity, group: where it is filed; an empty entity is the user's default one.
      run_id: stable over restarts of the daemon.
      config: shown beside the run.
    """

    run_path: str
    spool: str
    mode: str
    project: str
    entity: str
    group: str
    run_id: str
    config: dict[str, object]
