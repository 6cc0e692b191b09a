"""The metrics of a run, computed from the state of its league and from the newest reports of its learners."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from league.agents.learner.learner import UpdateReport
from league.core.metagame.probe_series import yardstick_key
from league.core.metagame.ratings import RatingRow, newest_rating, strongest
from league.core.state.state import LeagueState, PlayerState
from league.hosts.protocol import LearnerProgress
from league.run.budget import Spent
from league.run.daemon_status import DaemonStatus
from league.run.monitor import names
from league.run.monitor.run_view import mean_win_rate

MAX_SEATS = 16
"""Seats whose returns are reported one by one."""

MAX_VERSUS = 12
"""Players whose win rates against one another are reported one by one."""


def run_metrics(
    state: LeagueState,
    seen: DaemonStatus,
    *,
    ratings: Mapping[str, RatingRow],
    steps_per_s: float,
    journal_seq: int,
    disk_free: int,
) -> dict[str, float]:
    """All metrics of one moment, by name.

    Args:
      ratings: of policies, by name. steps_per_s: env steps, recent.
      journal_seq: durable events. disk_free: bytes free on the disk of the run.
    """
    values = {
        names.ENV_STEPS.name: float(seen.spent.env_steps),
        names.SETTLING_STEPS.name: float(state.totals.settling_steps),
        names.STEPS_PER_S.name: steps_per_s,
        names.GAMES.name: float(state.totals.games),
        names.ABORTED.name: float(state.totals.aborted),
        names.TRUNCATED.name: float(state.totals.truncated),
        names.REFUSED.name: float(seen.troubles.refused),
        names.HOSTS_LOST.name: float(seen.troubles.hosts_lost),
        names.PLAYERS.name: float(len(state.players)),
        names.SNAPSHOTS.name: float(len(state.snapshots)),
        names.OPEN_LEASES.name: float(len(state.leases)),
        names.JOURNAL_SEQ.name: float(journal_seq),
        names.ELAPSED_S.name: seen.spent.seconds,
        names.DISK_FREE.name: float(disk_free),
    }
    best = strongest(tuple(row for row in ratings.values() if row.games))
    if best is not None:
        values[names.BEST_RATING.name] = best.elo
    values.update(_probe_metrics(state, seen.spent))
    for player in state.players.values():
        if player.retired:  # it changes no more
            continue
        values.update(_player_metrics(state, player))
        values.update(_rating_metrics(player, ratings))
        values.update(_versus_metrics(state, player))
        values.update(_episode_metrics(player))
        progress = seen.progress.get(player.name)
        if progress is None:
            continue
        values[names.REFUSED_CHUNKS.of(player.name)] = float(progress.refused)
        if progress.update is not None:
            values.update(_update_metrics(player.name, progress, progress.update))
    return values


def _player_metrics(state: LeagueState, player: PlayerState) -> dict[str, float]:
    values = {
        names.PLAYER_SNAPSHOTS.of(player.name): float(player.num_snapshots),
        names.TRUNCATED_FRACTION.of(player.name): player.truncated / max(player.games, 1),
        names.GENERATION.of(player.name): float(player.generation),
        names.VERSION.of(player.name): float(player.version),
        names.TRAINED_STEPS.of(player.name): float(player.trained_steps + player.lost_steps),
        names.LOST_STEPS.of(player.name): float(player.lost_steps),
    }
    win_rate = mean_win_rate(state, player)
    if win_rate is not None:
        values[names.WIN_RATE.of(player.name)] = win_rate
    return values


def _rating_metrics(player: PlayerState, ratings: Mapping[str, RatingRow]) -> dict[str, float]:
    """Rating of a player's newest rated snapshot with its interval; nothing before the first."""
    rating = newest_rating(player, ratings)
    if rating is None:
        return {}
    return {
        names.RATING.of(player.name): rating.elo,
        names.RATING_LOW.of(player.name): rating.low,
        names.RATING_HIGH.of(player.name): rating.high,
    }


def _versus_metrics(state: LeagueState, player: PlayerState) -> dict[str, float]:
    """A player's win rates against the other players that it has met."""
    shown = list(itertools.islice(state.players.values(), MAX_VERSUS))
    others = [other for other in shown if other is not player] if player in shown else []
    posterior = state.posterior(player.policy)
    return {
        names.VERSUS.of(player.name, opponent=other.name): float(posterior.mean[other.policy])
        for other in others
        if posterior.games[other.policy] > 0
    }


def _episode_metrics(player: PlayerState) -> dict[str, float]:
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


def _update_metrics(player: str, progress: LearnerProgress, update: UpdateReport) -> dict[str, float]:
    """The learner's last update."""
    pairs = (
        (names.SAMPLED_STEPS, float(update.sampled_steps)),
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
        (names.SKIPPED_REPLICAS, float(update.skipped_replicas)),
        (names.SENT_BYTES, update.sent_bytes / max(update.steps, 1)),
        (names.GRADIENT_LAG, update.group.lag_mean),
        (names.DROPPED_GRADIENTS, float(update.group.dropped)),
    )
    return {metric.of(player): value for metric, value in pairs}


def _probe_metrics(state: LeagueState, spent: Spent) -> dict[str, float]:
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
