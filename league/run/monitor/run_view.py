"""The view of a run that its live table shows, made from the state of its league.

The daemon shows its own; `league top` makes the same of a run folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from league.config.run_config import RuntimeConfig
from league.core.directives import view_of
from league.core.gates.gates import beaten_at
from league.core.matchmaking.roles import matchmaker_of
from league.core.metagame.ratings import RatingRow
from league.core.player_account import player_account
from league.core.state.state import LeagueState, PlayerState
from league.envs.component_choice import kind_of
from league.run.budget import Spent
from league.run.monitor.view import GateView, PayoffView, PlayerView, RunView
from league.run.snapshot_requests import main_agents, max_age_s

MAX_COLUMNS = 8
"""Opponents in the table of win rates."""


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
    runtime: RuntimeConfig,
    ratings: Mapping[str, RatingRow],
    updates: Mapping[str, UpdateNumbers | None],
) -> RunView:
    """The view of a league.

    Args:
      runtime: when snapshots are taken whatever the gates say.
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
            replace(
                _player_view(state, player, ratings, updates.get(player.name)),
                next_snapshot_s=_next_snapshot_s(state, player, runtime, spent, budget_fraction),
            )
            for player in state.players.values()
        ),
        payoff=payoff_view(state),
    )


def _player_view(
    state: LeagueState, player: PlayerState, ratings: Mapping[str, RatingRow], update: UpdateNumbers | None
) -> PlayerView:
    return PlayerView(
        **vars(player_account(state, player, ratings)),
        win_rate=mean_win_rate(state, player),
        loss=None if update is None else update.loss,
        entropy=None if update is None else update.entropy,
        policy_lag=None if update is None else update.policy_lag,
        gate=gate_view(state, player),
    )


def _next_snapshot_s(
    state: LeagueState, player: PlayerState, runtime: RuntimeConfig, spent: Spent, budget_fraction: float | None
) -> float | None:
    """Seconds until a player's next snapshot at the latest, at the pace so far; None where there is no pace."""
    if player.paused or player.retired or spent.seconds <= 0.0:
        return None
    limits = []
    gate = state.config_of(player.name).gate
    if player.trained_steps and ":" not in kind_of(gate.test):  # nobody knows when one of the user's own gives up
        left = max(gate.timeout_steps - (player.trained_steps - player.gate_steps), 0)
        limits.append(left * spent.seconds / player.trained_steps)
    if any(player is main for main in main_agents(state)):
        if runtime.kind != "inprocess":  # there no clock decides
            limits.append(max_age_s(runtime, now=spent.seconds))
        if budget_fraction and runtime.snapshots_per_budget:
            part = math.floor(budget_fraction * runtime.snapshots_per_budget) + 1
            share = part / runtime.snapshots_per_budget - budget_fraction
            limits.append(share * spent.seconds / budget_fraction)
    return min(limits, default=None)


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
    """Every player's win rates against those that the players met most; None before the first game."""
    if not len(state.payoff):
        return None
    posteriors = [state.posterior(player.policy) for player in state.players.values()]
    games = np.sum([posterior.games for posterior in posteriors], axis=0)
    names = list(state.population.index)
    places = [place for place in np.argsort(-games, kind="stable").tolist()[:MAX_COLUMNS] if games[place] > 0]
    rows = tuple(
        tuple(float(known.mean[place]) if known.games[place] > 0 else None for place in places) for known in posteriors
    )
    return PayoffView(rows=tuple(state.players), columns=tuple(names[place] for place in places), win_rates=rows)
