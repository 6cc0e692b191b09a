"""`league status`: what a run does and how far it is, read from its folder alone. Never imports torch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from league.config.commented import chosen_in
from league.core.metagame.meta_game import own_snapshots
from league.core.metagame.ratings import RatingRow, league_ratings, newest_rating
from league.core.quarantine import quarantined
from league.core.state.state import LeagueState, PlayerState
from league.json_report import JsonReport
from league.policies.auto_export import EXPORTS, auto_choice
from league.policies.exact_file import read_exact
from league.probes.series import newest_text
from league.reports.run_size import disk_bytes, duration_text, size_text
from league.store.journaled_league import state_of_run
from league.store.run_folder import AlertStatus, RunFolder, WorkerStatus
from league.store.supervision import read_supervision

WORTH_TELLING_S = 60.0
"""Age of a live daemon's heartbeat above which it is reported: the daemon is busy or hangs."""


@dataclass(frozen=True)
class PlayerStatus:
    """One player.

    Fields:
      rating: Elo of its newest rated snapshot, None before the first rated game.
      unfrozen_steps: trained since its newest snapshot.
      lost_steps: trained and lost when its learner fell back to a restart state.
      mean_return, seat_returns, episode_length, score: of its last games, see `league.core.state.episodes`; None and
        empty before the first, `score` also where it has met no other policy.
    """

    player: str
    role: str
    version: int
    trained_steps: int
    games: int
    snapshots: int
    resets: int
    rating: float | None
    unfrozen_steps: int
    lost_steps: int = 0
    mean_return: float | None = None
    seat_returns: tuple[float, ...] = ()
    episode_length: float | None = None
    score: float | None = None

    def games_text(self) -> str:
        """Describes the player's last games for people."""
        assert self.mean_return is not None
        seats = [f"seat {seat} {mean:z.4g}" for seat, mean in enumerate(self.seat_returns)]
        parts = [f"return {self.mean_return:z.4g}" + (f" ({', '.join(seats)})" if len(seats) > 1 else "")]
        parts.append(f"{self.episode_length:.1f} decisions an episode")
        if self.score is not None:
            parts.append(f"score {self.score:.2f}")
        if self.lost_steps:
            parts.append(f"{self.lost_steps:,} trained steps lost")
        return ", ".join(parts)


@dataclass(frozen=True)
class StatusReport(JsonReport):
    """A run as of now.

    Fields:
      run: its folder. live: whether its daemon runs; pid: of the daemon (of the last one where not live).
      phase: "starting", "running", "draining", "stopped" or "failed". "killed": it ended without a last heartbeat.
        "silent": it runs on another host and has not written for minutes.
      workers: its processes, empty where not live. games, env_steps, snapshots: from the journal.
      steps_per_s: recent, 0 where not live. heartbeat_age_s: seconds since the daemon last wrote.
      counts: what its games count by, see `league.core.state.scoring`.
      message: why it stopped or failed.
      aborted, truncated: games thrown away because their env failed, and games that a time limit ended.
      refused, hosts_lost: answers refused and hosts lost since the last start of the daemon.
      trained_s: seconds of training, budget_left: fraction of the budget in [0, 1], if the daemon reported one.
      disk_bytes: what the folder takes.
      settling_steps: env steps of the rating games after training, which are not among `env_steps`.
      parked: hosts that were lost so often that they are tried again only now and then; empty where not live.
      set_aside: snapshots whose weights cannot be had.
      stuck: the call of an env that has not come back for long, with its game; empty for none and where not live.
      auto: what is played where nobody names a policy, with the reason; empty before the first snapshot.
      quarantined_games: games of its hosts that failed so often that they are not played any more.
      supervised: whether a supervisor starts it again after a crash. restarts: how often it did since `league up`;
        last_crash: what ended the run then. gave_up: why the supervisor does so no more.
      alerts: that have not recovered; empty where not live.
      probes: newest value of each yardstick, and of which snapshot; empty before the first.
      paused: who paused training and why; empty while it is not paused.
      tags: name -> snapshot. pins: snapshots whose weights are to stay.
      settings: dotted key -> value and reason, of the settings that were chosen for the game and the budget.
    """

    run: str
    live: bool
    pid: int
    phase: str
    workers: tuple[WorkerStatus, ...]
    games: int
    env_steps: int
    steps_per_s: float
    heartbeat_age_s: float
    players: tuple[PlayerStatus, ...]
    snapshots: int
    message: str
    counts: str
    aborted: int = 0
    truncated: int = 0
    refused: int = 0
    hosts_lost: int = 0
    trained_s: float | None = None
    budget_left: float | None = None
    disk_bytes: int = 0
    settling_steps: int = 0
    parked: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    quarantined_games: int = 0
    supervised: bool = False
    restarts: int = 0
    last_crash: str = ""
    gave_up: str = ""
    auto: str = ""
    stuck: str = ""
    paused: str = ""
    probes: str = ""
    alerts: tuple[AlertStatus, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    settings: Mapping[str, tuple[object, str]] = field(default_factory=dict)

    def settings_text(self) -> str:
        """The chosen settings with their reasons, for people; empty if there are none."""
        if not self.settings:
            return ""
        rows = [f"  {key} = {json.dumps(value)}  ({reason})" for key, (value, reason) in self.settings.items()]
        return "\n".join(["chosen for this game and budget (`league explain` tells more):", *rows])

    def text(self) -> str:
        """For people."""
        who = f"pid {self.pid}" if self.live else "not running"
        if self.pid and (not self.live or self.heartbeat_age_s > WORTH_TELLING_S):
            who += f", last sign of life {duration_text(self.heartbeat_age_s)} ago"
        workers = ", ".join(worker.text() for worker in self.workers)
        lines = [
            f"{self.run}: {self.phase} ({who})" + (f", {self.message}" if self.message else ""),
            f"{self.games:,} games, {self.env_steps:,} env steps"
            + (f" and {self.settling_steps:,} of rating games after training" if self.settling_steps else "")
            + f", {self.steps_per_s:,.0f} steps/s, "
            f"{self.snapshots} snapshots" + (f"; workers: {workers}" if workers else ""),
            f"counts {self.counts}",
            ", ".join(self._amounts()),
        ]
        troubles = (
            (self.truncated, "games ended by a time limit"),
            (self.aborted, "games thrown away"),
            (self.quarantined_games, "games not played any more, as they failed three times"),
            (self.refused, "answers refused"),
            (self.hosts_lost, "hosts lost"),
        )
        if any(number for number, _ in troubles):
            lines.append(", ".join(f"{number:,} {what}" for number, what in troubles if number))
        if self.supervised or self.restarts or self.gave_up:
            lines.append(self._supervision())
        if self.paused:
            lines.append(f"training is paused by {self.paused}")
        lines.extend(
            f"alert {alert.alert} ({duration_text(max(time.time() - alert.since, 0.0))} ago): {alert.text}"
            for alert in self.alerts
        )
        if self.stuck:
            lines.append(f"stuck: {self.stuck}")
        if self.parked:
            lines.append(f"parked, tried again every few minutes: {', '.join(self.parked)}; see logs/daemon.log")
        if self.set_aside:
            lines.append(f"snapshots set aside, as they cannot be read: {', '.join(self.set_aside)}")
        if self.tags or self.pins:
            lines.append("kept: " + ", ".join([*(f"{tag} = {name}" for tag, name in self.tags.items()), *self.pins]))
        if self.probes:
            lines.append(f"probes: {self.probes}")
        if self.auto:
            lines.append(f"auto is {self.auto}; also {', '.join(EXPORTS)}")
        for row in self.players:
            lines.append(
                f"  {row.player:<24} {row.role:<18} version {row.version:>7,}  {row.trained_steps:>13,} steps  "
                f"{row.games:>10,} games  {row.snapshots:>4} snapshots  {row.resets:>3} resets  "
                + ("unrated" if row.rating is None else f"{row.rating:+z.0f} Elo")
            )
            if row.mean_return is not None:
                lines.append(f"    lately {row.games_text()}")
        return "\n".join(lines)

    def _supervision(self) -> str:
        """Describes for people how often the run was started again."""
        times = "restarted once" if self.restarts == 1 else f"restarted {self.restarts} times"
        text = f"supervised, {times}" if self.supervised else f"was supervised, {times}"
        text += f", last after {self.last_crash}" if self.last_crash else ""
        return text + (f"; given up, as {self.gave_up}" if self.gave_up else "")

    def _amounts(self) -> Iterator[str]:
        if self.trained_s is not None:
            yield f"trained for {duration_text(self.trained_s)}"
        if self.budget_left is not None:
            yield f"{self.budget_left:.0%} of the budget left"
        yield f"{size_text(self.disk_bytes)} on disk"


def read_status(path: Path) -> StatusReport:
    """The status of a run, also of a live one.

    Raises:
      MissingRun, JournalError, StorageError.
    """
    folder = RunFolder.open(path)
    status = folder.read_status()
    state = state_of_run(folder)
    live = status is not None and folder.is_live(status)
    phase = "stopped" if status is None else folder.phase_of(status)
    ratings = {row.policy: row for row in league_ratings(state)}
    supervision = read_supervision(folder)
    return StatusReport(
        run=str(path),
        live=live,
        pid=0 if status is None else status.daemon.pid,
        phase=phase,
        workers=status.workers if status is not None and live else (),
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        settling_steps=state.totals.settling_steps,
        steps_per_s=status.steps_per_s if status is not None and live else 0.0,
        heartbeat_age_s=0.0 if status is None else round(max(time.time() - status.heartbeat_at, 0.0), 1),
        players=tuple(_player_status(state, player, ratings) for player in state.players.values()),
        snapshots=len(state.snapshots),
        message="" if status is None else status.message,
        counts=state.scoring.text,
        aborted=state.totals.aborted,
        truncated=state.totals.truncated,
        refused=0 if status is None else status.refused,
        hosts_lost=0 if status is None else status.hosts_lost,
        trained_s=None if status is None else status.trained_s,
        budget_left=None if status is None or status.budget_spent is None else 1.0 - status.budget_spent,
        disk_bytes=disk_bytes(folder.path),
        parked=status.parked if status is not None and live else (),
        auto=_auto(state, folder),
        stuck=status.stuck if status is not None and live else "",
        paused=_pause_text(state),
        probes=newest_text(state),
        alerts=status.alerts if status is not None and live else (),
        quarantined_games=status.quarantined_games if status is not None else 0,
        set_aside=tuple(quarantined(state)),
        tags=dict(state.tags),
        pins=state.pins,
        settings=chosen_in(folder.read_config()),
        supervised=supervision is not None and supervision.is_alive,
        restarts=0 if supervision is None else supervision.restarts,
        last_crash="" if supervision is None else supervision.last_crash,
        gave_up="" if supervision is None else supervision.gave_up,
    )


def _pause_text(state: LeagueState) -> str:
    pause = state.training_pause
    return "" if pause is None else f"{pause.by or 'somebody'}" + (f": {pause.reason}" if pause.reason else "")


def _auto(state: LeagueState, folder: RunFolder) -> str:
    """The export that is played where nobody names one, and why."""
    if not own_snapshots(state):
        return ""
    name, reason = auto_choice(state, read_exact(folder))
    return f"{name}: {reason}"


def _player_status(state: LeagueState, player: PlayerState, ratings: Mapping[str, RatingRow]) -> PlayerStatus:
    rating = newest_rating(player, ratings)
    return PlayerStatus(
        player=player.name,
        role=player.role,
        version=player.version,
        trained_steps=player.trained_steps,
        games=player.games,
        snapshots=player.num_snapshots,
        resets=player.generation,
        rating=None if rating is None else rating.elo,
        unfrozen_steps=player.trained_steps - _frozen_steps(state, player),
        lost_steps=player.lost_steps,
        mean_return=player.episodes.mean_return,
        seat_returns=player.episodes.seat_returns,
        episode_length=player.episodes.decisions if player.episodes.games else None,
        score=player.episodes.score if player.episodes.score_games else None,
    )


def _frozen_steps(state: LeagueState, player: PlayerState) -> int:
    """Trained steps of a player's newest snapshot; 0 without one."""
    newest = state.newest_snapshot(player)
    return 0 if newest is None else newest.trained_steps
