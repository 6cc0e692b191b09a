"""The wandb sink: chooses the mode, and starts the process that uploads."""

from __future__ import annotations

import contextlib
import netrc
import os
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from league.config.run_config import WandbConfig
from league.run.monitor.sink import SinkContext
from league.run.monitor.spool import Spool
from league.see.trackers import uploading_sink
from league.see.trackers.identity import lasting_identity
from league.see.trackers.uploading_sink import UploadingSink
from league.see.trackers.wandb_job import WandbJob

_DEFAULT_SERVER = "https://api.wandb.ai"


def resolved_mode(mode: str, environment: Mapping[str, str]) -> str:
    """The mode to start in: for "auto" what WANDB_MODE says, else online where the user is logged in, else offline."""
    if mode != "auto":
        return mode
    asked = environment.get("WANDB_MODE", "")
    if asked in ("online", "offline", "disabled"):
        return asked
    return "online" if is_logged_in(environment) else "offline"


def server_url(environment: Mapping[str, str]) -> str:
    """The address of the server that wandb uploads to."""
    return environment.get("WANDB_BASE_URL") or _DEFAULT_SERVER


def is_logged_in(environment: Mapping[str, str]) -> bool:
    """True if the environment or the netrc file holds a key; the key itself is not kept."""
    if environment.get("WANDB_API_KEY"):
        return True
    server = urllib.parse.urlsplit(server_url(environment)).hostname or ""
    home = Path(environment.get("HOME", "/"))
    for path in (environment.get("NETRC"), home / ".netrc", home / "_netrc"):
        if path and Path(path).is_file():
            with contextlib.suppress(netrc.NetrcParseError, OSError, UnicodeDecodeError):
                return netrc.netrc(path).authenticators(server) is not None
    return False


class WandbSink(UploadingSink):
    """Hands rows to `wandb_worker`, which alone imports wandb."""

    def __init__(self, job: WandbJob, *, spool: Spool, warn: Callable[[str], None], close_deadline_s: float) -> None:
        super().__init__(
            "wandb",
            module="league.see.trackers.wandb_worker",
            job=msgspec.json.encode(job),
            later=f"Upload them later with `league wandb sync {job.run_path}`.",
            spool=spool,
            warn=warn,
            close_deadline_s=close_deadline_s,
        )


class NoSink:
    """Null object for a disabled tracker."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def open_wandb_sink(context: SinkContext) -> WandbSink | NoSink:
    """The sink, started; or none where the settings or the environment disable it."""
    settings = context.settings if isinstance(context.settings, WandbConfig) else WandbConfig()
    mode = resolved_mode(settings.mode, os.environ)
    if mode == "disabled":
        return NoSink()
    folder = context.run_path / "wandb"
    context.storage.make_folder(folder)
    identity = lasting_identity(folder, context.run_name, storage=context.storage)
    job = WandbJob(
        run_path=str(context.run_path),
        spool=str(folder / "spool.jsonl"),
        mode=mode,
        name=context.run_name,
        run_id=identity.run_id,
        group=identity.run_id,
        config={**context.config, "auto": dict(context.reasons)},
        settings=settings,
        last_deadline_s=uploading_sink.CLOSE_DEADLINE_S + uploading_sink.LAST_DEADLINE_S,
    )
    spool = Spool(
        Path(job.spool),
        storage=context.storage,
        clock=context.clock,
        warn=context.warn,
        max_bytes=context.spool_bytes,
    )
    sink = WandbSink(job, spool=spool, warn=context.warn, close_deadline_s=uploading_sink.CLOSE_DEADLINE_S)
    sink.start()
    return sink
