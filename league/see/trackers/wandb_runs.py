"""The runs of a league at wandb: one of the league, and one of each player, in one group."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from league.errors import StorageError
from league.run.monitor.names import BEST_RATING, ENV_STEPS, RATING
from league.see.trackers.identity import player_id
from league.see.trackers.player_rows import player_rows, summary_of
from league.see.trackers.wandb_job import WandbJob
from league.store.storage import Storage

INIT_TIMEOUT_S = 20.0
STEPS_FILE = "steps.json"
RESERVED_ROWS = 1_000
_MAX_STEPS_BYTES = 1 << 20
LEAGUE_JOB, PLAYER_JOB = "league", "player"
"""Types of the league's own run, and of a player whose role is not known."""

_FOLDERS = {"WANDB_DATA_DIR": "data", "WANDB_CACHE_DIR": "cache"}
"""Where wandb keeps files besides its runs, under the `wandb` folder of the run rather than the user's home."""


class StepCounts:
    """Numbers of the rows of runs that are written offline: in each start wandb would begin at 0 again.

    Numbers are reserved on the disk before they are used, so that a crash leaves a gap and no number twice.
    """

    def __init__(self, path: Path, *, storage: Storage) -> None:
        self._path, self._storage = path, storage
        self._next: dict[str, int] = {}
        with contextlib.suppress(FileNotFoundError, StorageError, msgspec.MsgspecError):
            payload = storage.read_bytes(path, max_bytes=_MAX_STEPS_BYTES)
            self._next = msgspec.json.decode(payload, type=dict[str, int])
        self._reserved = dict(self._next)

    def take(self, run_id: str) -> int:
        """The number of the next row of a run."""
        number = self._next.get(run_id, 0)
        self._next[run_id] = number + 1
        if number >= self._reserved.get(run_id, 0):
            self._reserved[run_id] = number + RESERVED_ROWS
            self._write(self._reserved)
        return number

    def keep(self) -> None:
        """Give back what was reserved and not used."""
        self._reserved = dict(self._next)
        if self._next:
            self._write(self._next)

    def _write(self, counts: Mapping[str, int]) -> None:
        with contextlib.suppress(StorageError):  # a full disk costs a count, not the rows
            self._storage.atomic_write_bytes(self._path, msgspec.json.encode(counts), durable=False)


class WandbRuns:
    """Opens runs at wandb as they are needed. `league` is the one of the league.

    Args:
      wandb: the package.
      say: takes ("warning", sentence).
      roles: player -> role, looked up when a player's run is opened. storage: for the counts of rows.
    """

    def __init__(
        self,
        wandb: Any,
        job: WandbJob,
        *,
        say: Callable[[str, str], None],
        roles: Callable[[str], str],
        storage: Storage,
    ) -> None:
        self._wandb = wandb
        self._job = job
        self._say = say
        self._roles = roles
        self._mode = job.mode
        self._players: dict[str, Any] = {}
        self._steps = StepCounts(Path(job.run_path) / "wandb" / STEPS_FILE, storage=storage)
        self.league = self._open(
            job.run_id, name=job.name, job_type=LEAGUE_JOB, config=job.config, stats=job.settings.system_metrics
        )
        self.league.define_metric(BEST_RATING.name, step_metric=ENV_STEPS.name, summary=summary_of(BEST_RATING.name))

    @property
    def is_online(self) -> bool:
        """True while the server takes the rows; it may have been given up for good."""
        return self._mode == "online"

    @property
    def players(self) -> Mapping[str, Any]:
        """Player -> its run, of those that are open."""
        return {player: run for player, run in self._players.items() if run is not None}

    def log(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """A row of metrics: whole to the run of the league, and to each player's its own."""
        place = {ENV_STEPS.name: step, "_timestamp": time}
        self.log_row("", {**values, **place})
        for player, own in player_rows(values).items():
            if self.of_player(player) is not None:
                self.log_row(player, {**own, **place})

    def log_row(self, player: str, row: Mapping[str, Any]) -> None:
        """A row to the run of a player, or with "" to that of the league; its number follows that of earlier starts."""
        run = self._players[player] if player else self.league
        if self.is_online:  # the server counts
            run.log(dict(row))
        else:
            number = self._steps.take(player_id(self._job.run_id, player) if player else self._job.run_id)
            run.log(dict(row), step=number, commit=True)

    def of_player(self, player: str) -> Any:
        """The run of a player; None beyond `player_runs` of them."""
        if player not in self._players and len(self._players) < self._job.settings.player_runs:
            self._players[player] = self._open_player(player)
        return self._players.get(player)

    def finish(self) -> None:
        """End all runs, side by side: each may wait for the server."""
        runs = [run for run in (*self._players.values(), self.league) if run is not None]
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda run: run.finish(), runs))
        self._steps.keep()

    def _open_player(self, player: str) -> Any:
        role = self._roles(player) or PLAYER_JOB
        run = self._open(
            player_id(self._job.run_id, player),
            name=player,
            job_type=role,
            config={**self._job.config, "player": player, "role": role, "league_run": self._job.run_id},
            stats=False,
        )
        if run is None:
            return None
        rating = RATING.of(player)
        own = next(iter(player_rows({rating: 0.0})[player]))
        run.define_metric(own, step_metric=ENV_STEPS.name, summary=summary_of(rating))
        self.league.define_metric(rating, step_metric=ENV_STEPS.name, summary=summary_of(rating))
        return run

    def _open(self, run_id: str, *, name: str, job_type: str, config: Mapping[str, object], stats: bool) -> Any:
        """Open a run, the league's offline where the server cannot be had; those of the players then are too."""
        try:
            run = self._init(run_id, name=name, job_type=job_type, config=config, stats=stats)
        except Exception as error:  # process boundary: whatever wandb raises must end as a sentence
            if self._mode == "offline":
                raise
            self._say("warning", f"the server could not be reached ({type(error).__name__})")
            if job_type != LEAGUE_JOB:
                return None  # its service refuses the id from now on; the league's run has the player's metrics too
            self._wandb.teardown(exit_code=1)  # else its service keeps trying and refuses the run's id
            self._mode = "offline"
            run = self._init(run_id, name=name, job_type=job_type, config=config, stats=stats)
        run.define_metric(ENV_STEPS.name)
        run.define_metric("*", step_metric=ENV_STEPS.name)
        return run

    def _init(self, run_id: str, *, name: str, job_type: str, config: Mapping[str, object], stats: bool) -> Any:
        job = self._job
        return self._wandb.init(
            dir=job.run_path,
            project=job.settings.project,
            entity=job.settings.entity or None,
            group=job.group,
            job_type=job_type,
            id=run_id,
            name=name,
            tags=list(job.settings.tags) or None,
            resume="allow" if self._mode == "online" else None,  # offline there is nothing to ask; the id is enough
            mode=self._mode,
            config=dict(config),
            reinit="create_new",
            settings=self._wandb.Settings(
                silent=True,
                console="off",
                init_timeout=INIT_TIMEOUT_S,
                disable_git=True,
                disable_code=True,
                x_disable_stats=not stats,
                x_save_requirements=False,
            ),
        )


def keep_files_in(run_path: Path) -> None:
    """Make wandb keep all of its files in the run folder; before it is imported."""
    for variable, name in _FOLDERS.items():
        os.environ.setdefault(variable, str(run_path / "wandb" / name))
