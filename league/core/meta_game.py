"""The game between whole snapshots while the league runs: when its mixture is solved anew, and what is kept of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.events import MixtureMember, MixtureSolved
from league.core.metagame import LEAST_WEIGHT, exploitability, nash_mixture, replicator_mixture, snapshot_win_rates
from league.core.state import LeagueState, Mixture

LEAST_GAMES = 20
TOLERANCE = 5e-3
"""Win rate over a half that the best snapshot may keep against a mixture that is only trained against."""


def mixture_event(state: LeagueState) -> list[MixtureSolved]:
    """The mixture, solved anew where it is due; else nothing.

    Due after a new snapshot, and when the games between frozen policies have grown by a share of what they were.
    """
    assert state.settings is not None
    settings, games = state.settings.meta_game, state.totals.rating_games
    num_snapshots = len(own_snapshots(state))
    if not settings.solve or len(set(state.teams)) == 1 or num_snapshots < 2:
        return []
    known = state.mixture
    grown = games >= known.games * (1.0 + settings.growth) + LEAST_GAMES
    if num_snapshots == known.num_snapshots and not grown:
        return []
    names = _participants(state)
    win_rates = snapshot_win_rates(state, names)
    two_sides = len(set(state.teams)) == 2
    solver = settings.solver if settings.solver != "auto" else "nash" if two_sides else "replicator"
    mixture = (
        nash_mixture(win_rates, tolerance=TOLERANCE) if solver == "nash" else replicator_mixture(win_rates, explore=0.0)
    )
    members = tuple(
        MixtureMember(names[i], float(mixture[i]))
        for i in np.argsort(-mixture, kind="stable").tolist()
        if mixture[i] >= LEAST_WEIGHT
    )
    return [MixtureSolved(members, exploitability(win_rates, mixture), games, num_snapshots)]


def apply_mixture(state: LeagueState, event: MixtureSolved) -> None:
    """The newest mixture takes the place of the one before."""
    weights = {member.policy: member.weight for member in event.members}
    state.mixture = Mixture(weights, event.games, event.num_snapshots, event.exploitability)


def mixture_weights(state: LeagueState) -> NDArray[np.float64] | None:
    """float64 [P], the mixture with its share of exploration over all snapshots, sums to 1; None before the first."""
    assert state.settings is not None
    if not state.mixture.weights:
        return None
    result = np.zeros(len(state.population))
    for policy, weight in state.mixture.weights.items():
        result[state.population.index[policy]] = weight
    result /= result.sum()
    explore, snapshots = state.settings.meta_game.explore, state.population.snapshots()
    result *= 1.0 - explore
    result[snapshots] += explore / len(snapshots)
    return result


def own_snapshots(state: LeagueState) -> list[str]:
    """Snapshots that were taken in this league, oldest first."""
    return [name for name, snapshot in state.snapshots.items() if snapshot.player]


def _participants(state: LeagueState) -> list[str]:
    """The newest snapshots, and those of the present mixture."""
    assert state.settings is not None
    names = own_snapshots(state)
    newest = set(names[-state.settings.meta_game.most_policies :])
    return [name for name in names if name in newest or name in state.mixture.weights]
