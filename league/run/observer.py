"""Displays the daemon: the live table, the heartbeat file, the metrics. It reads, and changes nothing."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable

from league.alerts.condition import AlertInputs
from league.alerts.watch import AlertWatch
from league.core.metagame.ratings import newest_rating, strongest
from league.core.state.state import LeagueState, PlayerState
from league.monitor import names
from league.monitor.console import RunConsole
from league.monitor.sink import MetricSink
from league.monitor.view import RunView
from league.operations.disk_floor import DiskFloor
from league.pool.push import PoolPusher
from league.probes.series import yardstick_key
from league.run.background_ratings import BackgroundRatings, in_thread
from league.run.budget import ClockFile, Spent
from league.run.daemon_status import DaemonStatus
from league.run.run_view import UpdateNumbers, mean_win_rate, run_view
from league.runtime.protocol import LearnerProgress, Runtime
from league.store.journaled_league import JournaledLeague
from league.store.lock import this_process
from league.store.run_folder import CLOCK_FILE, RunFolder, RunStatus

STATUS_EVERY_S = 1.0
VIEW_EVERY_S = 0.5
METRICS_EVERY_S = 2.0
RATINGS_EVERY_S = 2.0
SPEED_OVER_S = 10.0
"""The steps per second shown are those of the last so many seconds."""

MAX_SEATS = 16
"""Seats whose returns are reported one by one."""

MAX_VERSUS = 12
"""Players whose win rates against one another are reported one by one."""


class Observer:
    """Shows a run; `observe` is called once a turn of the daemon and returns at once most of the time.

    Args:
      folder, league, runtime: of the run.
      console: live table or plain lines.
      sink: metrics.
      wall_time: seconds since 1970, a label. monotonic: seconds that never go back.
      env_steps_target: kept in the clock file, see `ClockFile`.
      floor: pauses training while the disk is nearly full.
      alerts, pusher: what to tell, and snapshots for a rating pool; closed by the caller.
    """

    def __init__(
        self,
        *,
        folder: RunFolder,
        league: JournaledLeague,
        runtime: Runtime,
        console: RunConsole,
        sink: MetricSink,
        env_steps_target: int | None,
        floor: DiskFloor,
        alerts: AlertWatch,
        pusher: PoolPusher,
        wall_time: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._league = league
        self._runtime = runtime
        self._console = console
        self._sink = sink
        self._env_steps_target = env_steps_target
        self._floor = floor
        self._alerts = alerts
        self._pusher = pusher
        self._wall_time = wall_time
        self._monotonic = monotonic
        self._started_at = wall_time()
        self._last_seen: DaemonStatus | None = None
        self._due = {"status": 0.0, "view": 0.0, "metrics": 0.0}
        self._speed: deque[tuple[float, int]] = deque()
        self._ratings = BackgroundRatings(every_s=RATINGS_EVERY_S, start=in_thread, monotonic=monotonic)
        self._phase = ""

    def observe(self, seen: DaemonStatus) -> None:
        """Whatever is due: table, heartbeat, metrics."""
        now = self._monotonic()
        self._speed.append((now, seen.spent.env_steps))
        while len(self._speed) > 2 and now - self._speed[0][0] > SPEED_OVER_S:
            self._speed.popleft()
        changed = seen.phase != self._phase
        self._phase = seen.phase
        self._ratings.refresh(self._league.state)
        self._floor.look(self._league.state)
        self._alerts.look(self._seen(seen, now))
        self._pusher.look(self._league.state)
        if self._is_due("status", STATUS_EVERY_S, now) or changed:
            self.write_status(seen, phase="running" if seen.phase == "training" else "draining")
        if self._is_due("view", VIEW_EVERY_S, now) or changed:
            self._console.show(self._view(seen))
        if self._is_due("metrics", METRICS_EVERY_S, now):
            self._sink.log(seen.spent.env_steps, self._metrics(seen))

    def write_status(self, seen: DaemonStatus | None, *, phase: str, message: str = "") -> None:
        """Write the heartbeat, and before it what is spent."""
        if seen is not None:
            self._last_seen = seen
            self.write_clock(seen)
        last = self._last_seen
        state = self._league.state
        self._folder.write_status(
            RunStatus(
                daemon=this_process(),
                phase=phase,
                started_at=self._started_at,
                heartbeat_at=self._wall_time(),
                journal_seq=self._league.durable_seq,
                workers=self._runtime.workers() if phase not in ("stopped", "failed") else (),
                games=state.totals.games,
                env_steps=state.totals.env_steps,
                steps_per_s=self._steps_per_s() if phase == "running" else 0.0,
                players=len(state.players),
                snapshots=len(state.snapshots),
                message=message,
                refused=0 if seen is None else seen.refused,
                hosts_lost=0 if seen is None else seen.hosts_lost,
                trained_s=None if last is None else last.spent.seconds,
                budget_spent=None if last is None else last.budget_fraction,
                parked=() if seen is None else seen.parked,
                stuck="" if seen is None else seen.stuck,
                quarantined_games=0 if seen is None else seen.quarantined_games,
                alerts=self._alerts.firing if phase not in ("stopped", "failed") else (),
                paused_by="" if state.training_pause is None else state.training_pause.by,
            )
        )

    def _seen(self, seen: DaemonStatus, now: float) -> AlertInputs:
        return AlertInputs(
            now=now,
            phase=seen.phase,
            state=self._league.state,
            progress=seen.progress,
            gone=seen.gone,
            parked=seen.parked,
            ratings=self._ratings.rows,
            disk_free=self._floor.free_bytes,
            disk_floor=self._floor.floor_bytes,
        )

    def write_clock(self, seen: DaemonStatus, *, durable: bool = False) -> None:
        """Write what is spent."""
        clock = ClockFile(spent=seen.spent, env_steps_target=self._env_steps_target)
        self._folder.write_resume_file(CLOCK_FILE, clock.encode(), durable=durable)

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
            run=str(self._folder.path),
            phase=seen.phase,
            spent=seen.spent,
            budget_fraction=seen.budget_fraction,
            steps_per_s=self._steps_per_s(),
            workers=len(self._runtime.workers()),
            ratings=self._ratings.rows,
            updates={player: _numbers(progress) for player, progress in seen.progress.items()},
        )

    def _metrics(self, seen: DaemonStatus) -> dict[str, float]:
        state = self._league.state
        values = {
            names.ENV_STEPS.name: float(seen.spent.env_steps),
            names.SETTLING_STEPS.name: float(state.totals.settling_steps),
            names.STEPS_PER_S.name: self._steps_per_s(),
            names.GAMES.name: float(state.totals.games),
            names.ABORTED.name: float(state.totals.aborted),
            names.TRUNCATED.name: float(state.totals.truncated),
            names.REFUSED.name: float(seen.refused),
            names.HOSTS_LOST.name: float(seen.hosts_lost),
            names.PLAYERS.name: float(len(state.players)),
            names.SNAPSHOTS.name: float(len(state.snapshots)),
            names.OPEN_LEASES.name: float(len(state.leases)),
            names.JOURNAL_SEQ.name: float(self._league.durable_seq),
            names.ELAPSED_S.name: seen.spent.seconds,
            names.DISK_FREE.name: float(self._floor.free_bytes),
        }
        best = strongest(tuple(row for row in self._ratings.rows.values() if row.games))
        if best is not None:
            values[names.BEST_RATING.name] = best.elo
        values.update(probe_metrics(state, seen.spent))
        for player in state.players.values():
            values.update(self._player_metrics(player, seen.progress.get(player.name)))
        return values

    def _player_metrics(self, player: PlayerState, progress: LearnerProgress | None) -> dict[str, float]:
        values = {
            names.PLAYER_SNAPSHOTS.of(player.name): float(player.num_snapshots),
            names.TRUNCATED_FRACTION.of(player.name): player.truncated / max(player.games, 1),
            names.GENERATION.of(player.name): float(player.generation),
            names.VERSION.of(player.name): float(player.version),
            names.TRAINED_STEPS.of(player.name): float(player.trained_steps + player.lost_steps),
            names.LOST_STEPS.of(player.name): float(player.lost_steps),
        }
        win_rate = mean_win_rate(self._league.state, player)
        rating = newest_rating(player, self._ratings.rows)
        if win_rate is not None:
            values[names.WIN_RATE.of(player.name)] = win_rate
        if rating is not None:
            values[names.RATING.of(player.name)] = rating.elo
            values[names.RATING_LOW.of(player.name)] = rating.low
            values[names.RATING_HIGH.of(player.name)] = rating.high
        values.update(versus_metrics(self._league.state, player))
        values.update(episode_metrics(player))
        if progress is None or progress.update is None:
            return values
        update = progress.update
        pairs = (
            (names.LOSS_POLICY, update.loss_policy),
            (names.LOSS_VALUE, update.loss_value),
            (names.ENTROPY, update.entropy),
            (names.KL, update.kl),
            (names.RHO_CLIP_FRACTION, update.rho_clip_fraction),
            (names.EFFECTIVE_SAMPLE_FRACTION, update.effective_sample_fraction),
            (names.GRADIENT_NORM, update.gradient_norm),
            (names.LAG_MEAN, update.lag_mean),
            (names.LAG_MAX, float(update.lag_max)),
            (names.STALE_STEPS, float(update.stale_steps)),
            (names.SKIPPED, float(progress.skipped)),
            (names.LEARNING_RATE, update.learning_rate),
            (names.ENTROPY_COST, update.entropy_cost),
            (names.TEACHER_KL, update.teacher_kl),
        )
        values.update({metric.of(player.name): value for metric, value in pairs})
        return values


def versus_metrics(state: LeagueState, player: PlayerState) -> dict[str, float]:
    """A player's win rates against the other players that it has met."""
    shown = list(itertools.islice(state.players.values(), MAX_VERSUS))
    others = [other for other in shown if other is not player] if player in shown else []
    posterior = state.posterior(player.policy)
    return {
        names.VERSUS.of(player.name, opponent=other.name): float(posterior.mean[other.policy])
        for other in others
        if posterior.games[other.policy] > 0
    }


def probe_metrics(state: LeagueState, spent: Spent) -> dict[str, float]:
    """Newest value of each yardstick, and the cost of all probes; nothing before the first."""
    if not state.probes.results:
        return {}
    values = {
        names.PROBE_VALUE.of_yardstick(yardstick_key(result.task.probe, reading.yardstick)): reading.value
        for result in state.probes.results
        for reading in result.readings
    }
    values[names.PROBE_CORE_S.name] = state.probes.core_seconds
    if spent.core_seconds:
        values[names.PROBE_FRACTION.name] = state.probes.core_seconds / spent.core_seconds
    return values


def episode_metrics(player: PlayerState) -> dict[str, float]:
    """Return, length and score of a player's last games; only what there is yet."""
    known = player.episodes
    values = {}
    if known.mean_return is not None:
        values[names.RETURN_MEAN.of(player.name)] = known.mean_return
        values[names.EPISODE_LENGTH.of(player.name)] = known.decisions
    if known.score_games:
        values[names.SCORE.of(player.name)] = known.score
    for seat, mean in enumerate(known.seat_returns[:MAX_SEATS]):
        if known.seat_games[seat]:
            values[names.SEAT_RETURN_MEAN.of(player.name, seat=seat)] = mean
    return values


def _numbers(progress: LearnerProgress) -> UpdateNumbers | None:
    update = progress.update
    return (
        None
        if update is None
        else UpdateNumbers(update.loss_policy + update.loss_value, update.entropy, update.lag_mean)
    )
