"""`league wandb sync`: uploads what a run has kept on the disk: its offline runs, then the rows that still wait."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from league.child_process import end_with_parent
from league.config.commented import reasons_in
from league.config.run_config import config_plain
from league.errors import LeagueError
from league.policies.trust import read_config
from league.store.run_folder import RunFolder
from league.trackers.identity import settled_identity
from league.trackers.wandb_job import WandbJob
from league.trackers.wandb_sink import is_logged_in

DEADLINE_S = 3600.0
"""Longest time for one part."""


def sync_run(path: Path, *, say: Callable[[str], None]) -> int:
    """Upload everything; returns how many offline runs were sent.

    Args:
      say: takes one sentence on the progress.
    Raises:
      MissingRun: there is no run. LeagueError: it is live, the user is not logged in, or the server did not take it.
    """
    folder = RunFolder.open(path)
    status = folder.read_status()
    if status is not None and folder.is_live(status):
        raise LeagueError(f"{path} is live: its own process uploads. Stop it first (`league down {path}`).")
    if not is_logged_in(os.environ):
        raise LeagueError("nobody is logged in to wandb: run `wandb login`, or set WANDB_API_KEY.")
    waiting = offline_folders(folder.wandb_path)
    for together in rounds(waiting):
        say(f"{len(together)} of {len(waiting)} offline runs, from {together[0].name}")
        done = _call(["-m", "wandb", "sync", *map(str, together)])
        for offline in together:
            if not is_synced(offline):
                tail = " ".join(done.stdout.decode(errors="replace").split())[-300:]
                raise LeagueError(f"{offline} was not taken: {tail or f'code {done.returncode}'}")
    if (folder.wandb_path / "spool.jsonl").exists():
        say("the rows that wait")
        _hand_over(folder)
    return len(waiting)


def offline_folders(wandb_path: Path) -> list[Path]:
    """The offline runs that were not uploaded yet, oldest first: parts of one run must come in their order."""
    return [folder for folder in sorted(wandb_path.glob("offline-run-*")) if not is_synced(folder)]


def rounds(waiting: Sequence[Path]) -> list[list[Path]]:
    """The folders in groups that are uploaded one after the other: in each at most one part of any run."""
    parts: Counter[str] = Counter()
    made: list[list[Path]] = []
    for folder in waiting:
        run_id = folder.name.split("-", 3)[3]  # offline-run-20261122_160503-ID
        if parts[run_id] == len(made):
            made.append([])
        made[parts[run_id]].append(folder)
        parts[run_id] += 1
    return made


def is_synced(offline: Path) -> bool:
    """True if wandb has marked it as uploaded."""
    return any(offline.glob("*.wandb.synced"))


def _hand_over(folder: RunFolder) -> None:
    """Let the uploading process of a run take the rest, online."""
    config = read_config(folder)
    job = WandbJob(
        run_path=str(folder.path),
        spool=str(folder.wandb_path / "spool.jsonl"),
        mode="online",
        group=folder.path.name,
        run_id=settled_identity(folder.wandb_path, folder.path.name, storage=folder.storage).run_id,
        config={**config_plain(config), "auto": dict(reasons_in(folder.read_config()))},
        settings=replace(config.wandb, mode="online"),
        last_deadline_s=DEADLINE_S,
    )
    done = _call(["-m", "league.trackers.wandb_worker"], given=msgspec.json.encode(job) + b"\n")
    warnings = [line[8:] for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("warning ")]
    if warnings or done.returncode:
        raise LeagueError(f"the rows that wait were not taken: {'; '.join(warnings) or f'code {done.returncode}'}.")


def _call(arguments: list[str], *, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, signal.SIGTERM),
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LeagueError(f"wandb took more than {DEADLINE_S / 60:.0f} minutes: try again later.") from error
