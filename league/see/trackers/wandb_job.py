"""The job of the process that uploads to wandb: one line of JSON on its standard input. Holds no secret."""

from __future__ import annotations

import msgspec

from league.config.run_config import WandbConfig


class WandbJob(msgspec.Struct):
    """One league at wandb.

    Fields:
      run_path: the run folder; wandb writes under its `wandb` folder.
      spool: file of `MetricRow` lines to upload.
      mode: "online" or "offline".
      name: of the league, the one that its run shows.
      run_id: stable over restarts of the daemon; those of the players begin with it.
      group: id under which the league's run and those of its players are filed; names of folders occur twice.
      config: shown beside the run, with the reasons of what was chosen under `auto`.
      settings: as configured.
      last_deadline_s: seconds that are left to the process once its standard input has ended.
    """

    run_path: str
    spool: str
    mode: str
    name: str
    run_id: str
    group: str
    config: dict[str, object]
    settings: WandbConfig = msgspec.field(default_factory=WandbConfig)
    last_deadline_s: float = 11.0
