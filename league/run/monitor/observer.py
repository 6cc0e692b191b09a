"""Shows the daemon once a turn: the heartbeat file, the live table, the metrics."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from league.config.run_config import RuntimeConfig
from league.core.metagame.ratings import RatingInputs, RatingRow, rate, rating_inputs
from league.core.state.state import LeagueState
from league.hosts.protocol import LearnerProgress, Runtime
from league.run.daemon_status import DaemonStatus
from league.run.monitor.console import RunConsole
from league.run.monitor.heartbeat import Heartbeat
from league.run.monitor.metrics import run_metrics
from league.run.monitor.run_view import UpdateNumbers, run_view
from league.run.monitor.sink import MetricSink
from league.run.monitor.view import RunView
from league.run.monitor.watches import Watches
from league.store.journaled_league import JournaledLeague

STATUS_EVERY_S = 1.0
VIEW_EVERY_S = {"table": 0.5, "lines": 2.5}
"""Time between two views by what the console shows: a line is printed every ten seconds, and all players are looked at.
"""
METRICS_EVERY_S = 2.0
RATINGS_EVERY_S = 2.0
SPEED_OVER_S = 10.0
"""The steps per second shown are those of the last so many seconds."""


class Observer:
    """Shows a run; `observe` is called once a turn of the daemon and returns at once most of the time.

    Args:
      run: its folder, which the live table shows.
      league, runtime: of the run.
      heartbeat: also written by the caller, at the start and at the end.
      watches: look at the league each turn, and may pause it.
      console: live table or plain lines.
      sink: metrics. runtime_config: its settings as they are now.
      monotonic: seconds that never go back.
    """

    def __init__(
        self,
        run: Path,
        *,
        league: JournaledLeague,
        runtime: Runtime,
        heartbeat: Heartbeat,
        watches: Watches,
        console: RunConsole,
        sink: MetricSink,
        runtime_config: Callable[[], RuntimeConfig] = RuntimeConfig,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._league = league
        self._runtime = runtime
        self._heartbeat = heartbeat
        self._watches = watches
        self._console = console
        self._sink = sink
        self._runtime_config = runtime_config
        self._monotonic = monotonic
        self._due = {"status": 0.0, "view": 0.0, "metrics": 0.0}
        self._speed: deque[tuple[float, int]] = deque()
        self._ratings = BackgroundRatings(every_s=RATINGS_EVERY_S, start=in_thread, monotonic=monotonic)
        self._phase = ""

    def observe(self, seen: DaemonStatus) -> None:
        """Whatever is due: table, heartbeat, metrics."""
        now, state = self._monotonic(), self._league.state
        self._speed.append((now, seen.spent.env_steps))
        while len(self._speed) > 2 and now - self._speed[0][0] > SPEED_OVER_S:
            self._speed.popleft()
        changed = seen.phase != self._phase
        self._phase = seen.phase
        self._ratings.refresh(state)
        self._watches.look(state, seen, ratings=self._ratings.rows, now=now)
        if self._is_due("status", STATUS_EVERY_S, now) or changed:
            running = seen.phase == "training"
            speed = self._steps_per_s() if running else 0.0
            self._heartbeat.write(seen, phase="running" if running else "draining", steps_per_s=speed)
        if self._is_due("view", VIEW_EVERY_S["table" if self._console.is_live else "lines"], now) or changed:
            self._console.show(self._view(seen))
        if self._is_due("metrics", METRICS_EVERY_S, now) or changed:  # with the phase the last row of a run comes
            self._sink.log(seen.spent.env_steps, self._metrics(seen))

    def _is_due(self, what: str, every_s: float, now: float) -> bool:
        if now < self._due[what]:
            return False
        self._due[what] = now + every_s
        return True

    def _steps_per_s(self) -> float:
        if len(self._speed) < 2:
            return 0.0
        (first, steps), (last, more) = self._speed[0], self._speed[-1]
        return (more - steps) / max(last - first, 1e-9)

    def _view(self, seen: DaemonStatus) -> RunView:
        return run_view(
            self._league.state,
            run=str(self._run),
            phase=seen.phase,
            spent=seen.spent,
            budget_fraction=seen.budget_fraction,
            steps_per_s=self._steps_per_s(),
            workers=len(self._runtime.workers()),
            runtime=self._runtime_config(),
            ratings=self._ratings.rows,
            updates={player: _numbers(progress) for player, progress in seen.progress.items()},
        )

    def _metrics(self, seen: DaemonStatus) -> dict[str, float]:
        return run_metrics(
            self._league.state,
            seen,
            ratings=self._ratings.rows,
            steps_per_s=self._steps_per_s(),
            journal_seq=self._league.durable_seq,
            disk_free=self._watches.floor.free_bytes,
        )


def _numbers(progress: LearnerProgress) -> UpdateNumbers | None:
    update = progress.update
    if update is None:
        return None
    return UpdateNumbers(update.loss_policy + update.loss_value, update.entropy, update.lag_mean)


MAX_SHARE = 0.05
"""Fraction of the time that refreshing may take: a refresh that took a second is followed by twenty without one."""

Job = Callable[[], None]


def in_thread(job: Job) -> None:
    """Run a job beside; nothing waits for it, not even the end of the process."""
    threading.Thread(target=job, name="ratings", daemon=True).start()


class BackgroundRatings:
    """The newest ratings that are ready; they are made from a copy of the games, so that the league may continue.

    Args:
      every_s: least time between two refreshes.
      start: runs a job beside; a test may run it at once.
      monotonic: seconds that never go back.
    """

    def __init__(
        self,
        *,
        every_s: float,
        start: Callable[[Job], None] = in_thread,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every_s = every_s
        self._start = start
        self._monotonic = monotonic
        self._rows: dict[str, RatingRow] = {}
        self._rated: tuple[int, ...] | None = None
        self._due = -float("inf")
        self._is_busy = False

    @property
    def rows(self) -> dict[str, RatingRow]:
        """By policy, of the games when the newest refresh began; empty before the first is ready."""
        return self._rows

    def refresh(self, state: LeagueState) -> None:
        """Begin a refresh where one is due and the games or policies are others than at the last; returns at once."""
        if self._is_busy or self._monotonic() < self._due:
            return
        # Where more than two sides play, training games have pairs of frozen policies among them too.
        games = state.totals.games if len(set(state.teams)) > 2 else state.totals.rating_games
        known = (games, len(state.population), len(state.population.absent))
        if known == self._rated:
            self._due = self._monotonic() + self._every_s
            return
        inputs = rating_inputs(state)
        self._rated, self._is_busy = known, True
        self._start(lambda: self._make(inputs))

    def _make(self, inputs: RatingInputs | None) -> None:
        began = self._monotonic()
        try:
            self._rows = {row.policy: row for row in rate(inputs)} if inputs is not None else {}
        finally:
            took = self._monotonic() - began
            self._due = began + max(self._every_s, took / MAX_SHARE)
            self._is_busy = False
