"""Writes the heartbeat of a run, `status.json`, and what the run has spent, `clock.json`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from league.envs.plugins import first_line
from league.errors import StorageError
from league.hosts.protocol import Runtime
from league.run.alerts.watch import AlertWatch
from league.run.budget import ClockFile
from league.run.daemon_status import DaemonStatus
from league.store.journaled_league import JournaledLeague
from league.store.lock import this_process
from league.store.run_folder import CLOCK_FILE, RunFolder, RunStatus, Troubles

ENDED = ("stopped", "failed")
"""Phases after which no process of the run is left."""


class Heartbeat:
    """The writer of both files.

    Args:
      folder, league, runtime, alerts: of the run.
      env_steps_target: where this command stops; kept in the clock file once it is reached, see `ClockFile`.
      wall_time: seconds since 1970, a label.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        league: JournaledLeague,
        runtime: Runtime,
        alerts: AlertWatch,
        env_steps_target: int | None,
        wall_time: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._league = league
        self._runtime = runtime
        self._alerts = alerts
        self._env_steps_target = env_steps_target
        self._wall_time = wall_time
        self._started_at = wall_time()
        self._last_seen: DaemonStatus | None = None

    def write(self, seen: DaemonStatus | None, *, phase: str, steps_per_s: float = 0.0, message: str = "") -> None:
        """Write the heartbeat, and before it what is spent; a run that has ended has written that durably.

        Args:
          seen: None before the daemon has made a turn, and where it is gone.
          phase, message: see `RunStatus`. steps_per_s: env steps, recent.
        """
        if seen is not None:
            self._last_seen = seen
            if phase not in ENDED:
                self.write_clock(seen)
        last, state = self._last_seen, self._league.state
        troubles = Troubles() if last is None else last.troubles
        if seen is None:  # the daemon is gone, or has not begun
            troubles = replace(troubles, parked=(), stuck="")
        self._folder.write_status(
            RunStatus(
                daemon=this_process(self._folder.path),
                phase=phase,
                started_at=self._started_at,
                heartbeat_at=self._wall_time(),
                journal_seq=self._league.durable_seq,
                workers=() if phase in ENDED else self._runtime.workers(),
                games=state.totals.games,
                env_steps=state.totals.env_steps,
                steps_per_s=steps_per_s,
                players=len(state.players),
                snapshots=len(state.snapshots),
                message=message,
                trained_s=None if last is None else last.spent.seconds,
                budget_spent=None if last is None else last.budget_fraction,
                alerts=() if phase in ENDED else self._alerts.firing,
                paused_by="" if state.training_pause is None else state.training_pause.by,
                **vars(troubles),
            )
        )

    @contextlib.contextmanager
    def failure_noted(self) -> Iterator[None]:
        """Writes why the run failed where the body raises, and lets it raise."""
        try:
            yield
        except BaseException as error:
            with contextlib.suppress(StorageError):  # a full disk must not hide the error
                self.write(None, phase="failed", message=first_line(error) or repr(error))
            raise

    def write_clock(self, seen: DaemonStatus, *, durable: bool = False) -> None:
        """Write what is spent."""
        target = self._env_steps_target
        is_reached = target is not None and seen.spent.env_steps >= target
        clock = ClockFile(spent=seen.spent, env_steps_target=target if is_reached else None)
        self._folder.write_resume_file(CLOCK_FILE, clock.encode(), durable=durable)
