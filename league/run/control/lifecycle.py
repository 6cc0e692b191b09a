"""`league up`, `down`, `restart` and `ps`: runs under a supervisor, apart from any terminal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from league.errors import LeagueError
from league.http.token_file import remove_tokens
from league.stages import begin_stage
from league.store.known_runs import known_runs, note_run
from league.store.lock import Holder, is_alive, is_of_this_host
from league.store.run_folder import RunFolder, RunStatus
from league.store.supervision import Supervision, read_supervision
from league.text_table import TextTable
from league.wording import clock_text, last_line

LOOK_EVERY_S = 0.1
LAST_LINES_BYTES = 16 << 10
STOP_S = 4.0
"""Seconds that a stop takes, as a rule."""


@dataclass(frozen=True)
class RunRow:
    """One run in `league ps`.

    Fields:
      phase: as in `league status` while the daemon is live. A supervised run without one is "starting" before its first
        heartbeat, "ending" while bots are played after its last, and "restarting" after a crash.
      pid: of its daemon, 0 where there is none. supervised: whether a crash is followed by another start.
      uptime_s: since its daemon started, 0 where it is not live. heartbeat_age_s: since the daemon last wrote.
      steps_per_s: recent. budget_spent: fraction in [0, 1], None where it is not known.
      restarts: after crashes, since `league up`.
    """

    run: str
    phase: str
    live: bool
    pid: int
    supervised: bool
    uptime_s: float
    heartbeat_age_s: float
    env_steps: int
    steps_per_s: float
    snapshots: int
    budget_spent: float | None
    restarts: int
    message: str


def bring_up(
    path: Path,
    *,
    first: Sequence[str] = (),
    again: Sequence[str],
    settings: Sequence[str] = (),
    restart: bool,
    new_tokens: bool = False,
    wait_s: float,
) -> RunStatus | None:
    """Start a supervisor for a run and wait until the run trains.

    Args:
      first: `league` arguments that make the run where the folder holds none; again: those that continue it;
        settings: added to these until the run trains.
      restart: whether it starts again after a crash. new_tokens: whether its tokens are made again.
      wait_s: longest wait; the run keeps starting after it.
    Returns:
      The heartbeat of the training run; None where the wait was too short to see one.
    Raises:
      RunInUse: it is up already, or being trained from a terminal.
      LeagueError: it ended at once; with what it said last.
    """
    folder = RunFolder(path)
    folder.make_logs_folder()
    _require_free(folder)
    if new_tokens:
        remove_tokens(folder.tokens_path, storage=folder.storage)
    before = _size(folder.console_log_path)
    last = folder.read_status() if folder.config_path.is_file() else None
    # Compared as they are: the clock may go back.
    seen_before = None if last is None else (last.daemon, last.heartbeat_at)
    command = [sys.executable, "-m", "league.run.control.supervisor", "--run", str(folder.path)]
    for name, words in (("--first", first), ("--again", again), ("--settings", settings)):
        command += [name, json.dumps(list(words))]
    with folder.console_log_path.open("ab") as log:
        process = subprocess.Popen(
            [*command, *([] if restart else ["--no-restart"])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    note_run(folder.path)
    deadline, shown = time.monotonic() + wait_s, ""
    while time.monotonic() < deadline:
        shown = _show_stage(folder, before, shown)
        code = process.poll()
        status = folder.read_status() if folder.config_path.is_file() else None
        is_new = status is not None and (status.daemon, status.heartbeat_at) != seen_before
        if status is not None and is_new and status.phase in ("running", "draining"):
            return status
        if code is not None:
            if code == 0:
                return status
            raise LeagueError(_last_words(folder, before))
        time.sleep(LOOK_EVERY_S)
    return None


def take_down(path: Path, *, now: bool, wait_s: float) -> str:
    """Stop a run, whether `league up` or a terminal started it, and wait until it is gone.

    Args:
      now: leave at once, without finishing the games in hand or saving what was learnt since the last restart states.
    Returns:
      One sentence on what was done.
    Raises:
      LeagueError: it runs on another host, belongs to another user, or did not end in time.
    """
    folder = RunFolder.open(path)
    holders = _holders(folder)
    if not holders:
        return f"{path} is not running."
    for holder in holders:
        if not is_of_this_host(holder):
            raise LeagueError(f"{path} runs on {holder.host}: give this command there.")
    deadline = time.monotonic() + wait_s
    begin_stage(f"stopping {path}: games in hand end, and everything is saved", seconds=STOP_S)
    _signal(path, holders[0])
    asked_again = False
    while any(is_alive(holder) for holder in holders):
        if now and not asked_again:
            time.sleep(LOOK_EVERY_S)
            _signal(path, holders[-1])
            asked_again = True
        if time.monotonic() >= deadline:
            raise LeagueError(
                f"{path} was asked to stop and has not ended within {wait_s:g} s: it keeps saving; "
                "`league down RUN --now` makes it leave at once."
            )
        time.sleep(LOOK_EVERY_S)
        holders = [holder for holder in _holders(folder) if is_of_this_host(holder)] or holders
    status = folder.read_status()
    return f"{path} is down." if status is None else f"{path} is down: {status.phase}, {status.env_steps:,} env steps."


def run_rows(*, everything: bool) -> list[RunRow]:
    """The runs of this user on this machine: those that are live or supervised, or all that are known."""
    rows = []
    for folder in known_runs():
        row = row_of(folder)
        if everything or row.live or row.supervised:
            rows.append(row)
    return rows


def row_of(folder: RunFolder) -> RunRow:
    """The row of one run, from its heartbeat and its supervisor's record alone."""
    supervision = read_supervision(folder)
    supervised = supervision is not None and supervision.is_alive(folder)
    try:
        account = folder.account()
    except LeagueError as error:
        return RunRow(str(folder.path), "unreadable", False, 0, supervised, 0, 0, 0, 0, 0, None, 0, str(error))
    status, live = account.status, account.live
    if not account.began:
        phase = "starting" if supervised else "stopped"
        return RunRow(str(folder.path), phase, False, 0, supervised, 0, 0, 0, 0, 0, None, 0, "")
    phase, message = status.phase, status.message
    if supervision is not None and supervised and not live:
        if status.heartbeat_at < supervision.started_at:
            phase, message = "starting", ""
        else:
            phase = "ending" if phase == "stopped" else "restarting"
    paused = f"training is paused by {status.paused_by}" if status.paused_by else ""
    return RunRow(
        run=str(folder.path),
        phase=phase,
        live=live,
        pid=status.daemon.pid if live else 0,
        supervised=supervised,
        uptime_s=max(time.time() - status.started_at, 0.0) if live else 0.0,
        heartbeat_age_s=account.age_s,
        env_steps=status.env_steps,
        steps_per_s=status.steps_per_s,
        snapshots=status.snapshots,
        budget_spent=status.budget_spent,
        restarts=0 if supervision is None else supervision.restarts,
        message=message or paused or ("" if supervision is None else supervision.gave_up),
    )


def rows_json(rows: Sequence[RunRow]) -> str:
    """The rows as one JSON object."""
    return json.dumps({"runs": [asdict(row) for row in rows]})


def rows_text(rows: Sequence[RunRow]) -> str:
    """The rows as a table for people."""
    if not rows:
        return "no run is up; `league ps --all` lists those that have ended"
    heads = ("run", "phase", "pid", "up for", "steps", "steps/s", "budget", "restarts")
    cells = []
    for row in rows:
        up_for = clock_text(row.uptime_s) if row.live else "-"
        spent = "-" if row.budget_spent is None else f"{row.budget_spent:.0%}"
        restarts = row.restarts if row.supervised or row.restarts else "-"
        speed = (row.env_steps, row.steps_per_s)
        cells.append((_short(row.run), row.phase, row.pid or "-", up_for, *speed, spent, restarts))
    head, *shown = TextTable(heads, cells, (0, 1), ("", "", "", "", ",", ",.0f")).lines()
    lines = [head]
    for row, line in zip(rows, shown, strict=True):
        lines += [line, *([f"    {row.message}"] if row.message else [])]
    return "\n".join(lines)


def _short(run: str) -> str:
    """A path relative to the current folder where it lies below."""
    path = Path(run)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else run


def _require_free(folder: RunFolder) -> None:
    """Refuse a run that somebody works on.

    Raises:
      RunInUse: a supervisor or a daemon does.
    """
    for lock in (folder.supervisor_lock, folder.lock):
        with lock:
            pass


def _holders(folder: RunFolder) -> list[Holder]:
    """The live processes of a run that take a stop: its supervisor first, then its daemon."""
    supervision: Supervision | None = read_supervision(folder)
    account = folder.account()
    found = [] if supervision is None or not supervision.is_alive(folder) else [supervision.supervisor]
    if account.live:
        found.append(account.status.daemon)
    return found


def _signal(path: Path, holder: Holder) -> None:
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise LeagueError(f"{path} belongs to another user: process {holder.pid} takes no signal of yours.") from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _show_stage(folder: RunFolder, offset: int, shown: str) -> str:
    """Show the newest line of the console log after `offset` bytes unless it is the one `shown`; returns it."""
    with contextlib.suppress(OSError), folder.console_log_path.open("rb") as log:
        log.seek(max(offset, _size(folder.console_log_path) - LAST_LINES_BYTES))
        line = last_line(log.read().decode(errors="replace")).removeprefix("league: ").removesuffix(" ...")
        if line and line != shown:
            begin_stage(f"{folder.path.name}: {line}")
            return line
    return shown


def _last_words(folder: RunFolder, offset: int) -> str:
    """The last error in the console log after `offset` bytes, or where to look."""
    with folder.console_log_path.open("rb") as log:
        log.seek(max(offset, _size(folder.console_log_path) - LAST_LINES_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
    for place in range(len(lines) - 1, -1, -1):
        if lines[place].startswith("league: ") and not lines[place].endswith(" ..."):  # that is a stage
            return "\n".join([lines[place].removeprefix("league: "), *lines[place + 1 :]])
    return f"the run ended at once: see {folder.console_log_path}."
