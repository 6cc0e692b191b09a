"""The view of a live run, read from its folder: what `league top` draws again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from league.config.loading import parse_config
from league.core.metagame.ratings import league_ratings
from league.core.state.state import LeagueState
from league.run.budget import Spent
from league.run.monitor import names
from league.run.monitor.console import RunConsole
from league.run.monitor.jsonl_sink import last_row
from league.run.monitor.run_view import UpdateNumbers, run_view
from league.run.monitor.view import RunView
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder

EVERY_S = 2.0
SHARE = 0.1
"""Most of the time that reading a run may take: a look that took a second is followed by nine without one."""


def watch_run(path: Path, console: RunConsole, *, once: bool, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show a run until it ends; `once` shows it one time.

    Raises:
      MissingRun, JournalError, StorageError.
    """
    folder = RunFolder.open(path)
    while True:
        begun = time.monotonic()
        live = folder.account().live
        console.show(read_view(folder))
        if once or not live:
            return
        sleep(max(EVERY_S, (time.monotonic() - begun) / SHARE))


def read_view(folder: RunFolder) -> RunView:
    """The view of a run as its journal, heartbeat and last metrics have it.

    Raises:
      JournalError, StorageError.
    """
    state, status = state_of_run(folder), folder.account().status
    return run_view(
        state,
        run=str(folder.path),
        phase=status.phase,
        spent=Spent(seconds=status.trained_s or 0.0, env_steps=state.totals.env_steps),
        budget_fraction=status.budget_spent,
        steps_per_s=status.steps_per_s,
        workers=len(status.workers),
        runtime=parse_config(folder.read_config(), source=str(folder.path)).runtime,
        ratings={row.policy: row for row in league_ratings(state)},
        updates=_last_updates(folder, state),
    )


def _last_updates(folder: RunFolder, state: LeagueState) -> dict[str, UpdateNumbers]:
    """Of each player, the numbers in the newest row of metrics.jsonl; of none where there is no such row yet."""
    row = last_row(folder.metrics_path)
    if row is None:
        return {}
    found = {}
    for player in state.players:
        metrics = (names.LOSS_POLICY, names.LOSS_VALUE, names.ENTROPY, names.LAG_MEAN)
        numbers = [row.values[metric.of(player)] for metric in metrics if metric.of(player) in row.values]
        if len(numbers) == len(metrics):
            policy, value, entropy, lag = numbers
            found[player] = UpdateNumbers(policy + value, entropy, lag)
    return found
