"""The view of a run that its live table shows, made from the state of its league.

The daemon shows its own; `league top` makes the same of a run folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from league.core.directives import view_of
from league.core.gates.gates import beaten_at
from league.core.matchmaking.roles import matchmaker_of
from league.core.metagame.ratings import RatingRow, newest_rating
from league.core.state.state import LeagueState, PlayerState
from league.run.budget import Spent
from league.run.monitor.view import GateView, PayoffView, PlayerView, RunView

MAX_COLUMNS = 8


@dataclass(frozen=True)
class UpdateNumbers:
    """A learner's last update: loss is policy + value loss, entropy in nats, policy_lag in updates (mean)."""

    loss: float
    entropy: float
    policy_lag: float


def run_view(
    state: LeagueState,
    *,
    run: str,
    phase: str,
    spent: Spent,
    budget_fraction: float | None,
    steps_per_s: float,
    workers: int,
    ratings: Mapping[str, RatingRow],
    updates: Mapping[str, UpdateNumbers | None],
) -> RunView:
    """The view of a league.

    Args:
      ratings: of snapshots, by name. updates: of players, by name.
      the others: as in `RunView`.
    """
    return RunView(
        run=run,
        phase=phase,
        elapsed_s=spent.seconds,
        budget_fraction=budget_fraction,
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        steps_per_s=steps_per_s,
        snapshots=len(state.snapshots),
        workers=workers,
        players=tuple(
            _player_view(state, player, newest_rating(player, ratings), updates.get(player.name))
            for player in state.players.values()
        ),
        payoff=payoff_view(state),
    )


def _player_view(
    state: LeagueState, player: PlayerState, rating: RatingRow | None, update: UpdateNumbers | None
) -> PlayerView:
    return PlayerView(
        player=player.name,
        role=player.role,
        version=player.version,
        trained_steps=player.trained_steps,
        snapshots=player.num_snapshots,
        rating=None if rating is None else rating.elo,
        rating_low=None if rating is None else rating.low,
        rating_high=None if rating is None else rating.high,
        win_rate=mean_win_rate(state, player),
        loss=None if update is None else update.loss,
        entropy=None if update is None else update.entropy,
        policy_lag=None if update is None else update.policy_lag,
        gate=gate_view(state, player),
        mean_return=player.episodes.mean_return,
        seat_returns=player.episodes.seat_returns,
        episode_length=player.episodes.decisions if player.episodes.games else None,
        score=player.episodes.score if player.episodes.score_games else None,
    )


def mean_win_rate(state: LeagueState, player: PlayerState) -> float | None:
    """Mean of the posterior win rates over the opponents that the player has met; None before the first game."""
    posterior = state.posterior(player.policy)
    met = np.flatnonzero(posterior.games > 0)
    return float(posterior.mean[met].mean()) if len(met) else None


def gate_view(state: LeagueState, player: PlayerState) -> GateView | None:
    """A player's distance from its next snapshot."""
    settings = state.config_of(player.name)
    steps = player.trained_steps - player.gate_steps
    beaten, gate_opponents = 0, np.array([], dtype=np.int64)
    if state.is_competitive:
        view = view_of(state, player.name)
        gate_opponents = matchmaker_of(settings).gate_opponents(view)
        means = view.posterior.take(gate_opponents).mean
        bar = beaten_at(settings.gate)
        enough = view.posterior.take(gate_opponents).games >= bar.min_games
        beaten = int(np.count_nonzero((means > bar.win_rate) & enough))
    gate = settings.gate
    return GateView(steps, gate.min_steps, gate.timeout_steps, beaten, len(gate_opponents))


def payoff_view(state: LeagueState) -> PayoffView | None:
    """Every player's win rates against the players and the newest snapshots; None before the first game."""
    if not len(state.payoff):
        return None
    population = state.population
    newest = list(state.snapshots)[-(MAX_COLUMNS - min(len(state.players), MAX_COLUMNS // 2)) :]
    columns = (*list(state.players)[: MAX_COLUMNS // 2], *newest)
    rows = []
    for player in state.players.values():
        posterior = state.posterior(player.policy)
        places = [population.index[name] for name in columns]
        rows.append(tuple(float(posterior.mean[p]) if posterior.games[p] > 0 else None for p in places))
    return PayoffView(rows=tuple(state.players), columns=columns, win_rates=tuple(rows))
