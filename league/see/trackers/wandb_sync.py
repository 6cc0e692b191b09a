"""`league wandb sync`: uploads what a run has kept on the disk: its offline runs, then the rows that still wait."""

from __future__ import annotations

import functools
import http.client
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from league.config.commented import reasons_in
from league.config.run_config import config_plain
from league.envs.workers.child_endings import wait_for_killed
from league.errors import LeagueError
from league.policies.trust import read_config
from league.processes.child_process import end_with_parent
from league.see.trackers.identity import settled_identity
from league.see.trackers.wandb_job import WandbJob
from league.see.trackers.wandb_sink import is_logged_in, server_url
from league.store.run_folder import RunFolder
from league.wording import duration_text, error_line

DEADLINE_S = 3600.0
"""Longest time for one part."""
SAY_EVERY_S = 30.0
ANSWER_S = 10.0


def sync_run(path: Path, *, say: Callable[[str], None]) -> int:
    """Upload everything; returns how many offline runs were sent.

    Args:
      say: takes one sentence on the progress.
    Raises:
      MissingRun: there is no run. LeagueError: it is live, the user is not logged in, or the server did not take it.
    """
    folder = RunFolder.open(path)
    if folder.account().live:
        raise LeagueError(f"{path} is live: its own process uploads. Stop it first (`league down {path}`).")
    if not is_logged_in(os.environ):
        raise LeagueError("nobody is logged in to wandb: run `wandb login`, or set WANDB_API_KEY.")
    waiting = offline_folders(folder.wandb_path)
    has_rows = (folder.wandb_path / "spool.jsonl").exists()
    url = server_url(os.environ)
    if (waiting or has_rows) and (silence := silence_of(url)):
        say(f"{url} does not answer ({silence}); wandb tries for up to {duration_text(DEADLINE_S)}, Ctrl-C ends it")
    for together in rounds(waiting):
        say(f"{len(together)} of {len(waiting)} offline runs, from {together[0].name}")
        done = _call(["-m", "wandb", "sync", *map(str, together)], say=say)
        for offline in together:
            if not is_synced(offline):
                tail = " ".join(done.stdout.decode(errors="replace").split())[-300:]
                raise LeagueError(f"{offline} was not taken: {tail or f'code {done.returncode}'}")
    if has_rows:
        say("the rows that wait")
        _hand_over(folder, say=say)
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


def _hand_over(folder: RunFolder, *, say: Callable[[str], None]) -> None:
    """Let the uploading process of a run take the rest, online."""
    config = read_config(folder)
    identity = settled_identity(folder.wandb_path, folder.path.name, storage=folder.storage)
    job = WandbJob(
        run_path=str(folder.path),
        spool=str(folder.wandb_path / "spool.jsonl"),
        mode="online",
        name=folder.path.name,
        run_id=identity.run_id,
        group=identity.run_id,
        config={**config_plain(config), "auto": dict(reasons_in(folder.read_config()))},
        settings=replace(config.wandb, mode="online"),
        last_deadline_s=DEADLINE_S,
    )
    done = _call(["-m", "league.see.trackers.wandb_worker"], say=say, given=msgspec.json.encode(job) + b"\n")
    warnings = [line[8:] for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("warning ")]
    if warnings or done.returncode:
        raise LeagueError(f"the rows that wait were not taken: {'; '.join(warnings) or f'code {done.returncode}'}.")


def _call(
    arguments: list[str], *, say: Callable[[str], None], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=functools.partial(end_with_parent, signal.SIGTERM),  # noqa: PLW1509  it calls the kernel alone
    )
    try:
        output = _output(process, given, say=say)
    finally:
        process.kill()
        wait_for_killed(process)
    return subprocess.CompletedProcess(arguments, process.returncode, output)


def _output(process: subprocess.Popen[bytes], given: bytes, *, say: Callable[[str], None]) -> bytes:
    """Return what a process writes until it ends. Every `SAY_EVERY_S` a sentence says that it still works.

    Raises:
      LeagueError: it is not over at the deadline.
    """
    waited, rest = 0.0, given or None
    while waited < DEADLINE_S:
        try:
            return process.communicate(rest, timeout=SAY_EVERY_S)[0]
        except subprocess.TimeoutExpired:
            waited, rest = waited + SAY_EVERY_S, None
        say(f"still uploading after {duration_text(waited)}")
    raise LeagueError(f"wandb took more than {DEADLINE_S / 60:.0f} minutes: try again later.")


def silence_of(url: str) -> str:
    """The reason that no server answers at an address, in a few words; empty where one does, whatever it says."""
    try:
        urllib.request.urlopen(url, timeout=ANSWER_S).close()
    except urllib.error.HTTPError:
        return ""
    except urllib.error.URLError as error:  # certificates are wandb's own affair
        return "" if isinstance(error.reason, ssl.SSLError) else error_line(error)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return error_line(error)
    return ""
