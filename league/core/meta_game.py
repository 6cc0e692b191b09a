"""The game between whole snapshots: which mixture of them no single one beats, and when it is solved anew.

Shape letter: N policies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.core.events import MixtureMember, MixtureSolved
from league.core.ratings import frozen_pairs, most_probable_ratings, win_probability
from league.core.solvers import Solver, exploitability, solver_of
from league.core.state import LeagueState, Mixture

Array = NDArray[np.float64]

MODEL_GAMES = 2.0
"""Games with which the rating model's forecast enters a pair's win rate; a pair that never met has that alone."""
LEAST_WEIGHT = 1e-3
"""Members of a mixture with less weight are left out."""
LEAST_GAMES = 20


def league_mixture(state: LeagueState) -> tuple[tuple[str, float], ...]:
    """The mixture over all snapshots of this league: (snapshot, weight), heaviest first; empty without one."""
    names = own_snapshots(state)
    if not names:
        return ()
    if len(set(state.teams)) == 1 or len(names) == 1:
        return ((names[-1], 1.0),)
    mixture = solver_of_league(state)(snapshot_win_rates(state, names))
    kept = _kept(mixture)
    weights = mixture[kept] / mixture[kept].sum()
    return tuple(zip([names[i] for i in kept.tolist()], weights.tolist(), strict=True))


def snapshot_win_rates(state: LeagueState, names: Sequence[str]) -> Array:
    """float64 [N, N] of snapshots, oldest first: games played, filled up by what the ratings forecast."""
    assert state.settings is not None
    numbers = np.array([state.population.index[name] for name in names], dtype=np.int64)
    pairs = frozen_pairs(state, numbers)
    places = {name: place for place, name in enumerate(names)}
    parents = [state.snapshots[name].parent for name in names]
    ratings = most_probable_ratings(
        len(numbers),
        pairs,
        parents=np.array([-1 if parent is None else places.get(parent, -1) for parent in parents], dtype=np.int64),
        anchor=0,
        parent_draws=state.settings.ratings.parent_draws,
    )
    scores = MODEL_GAMES * win_probability(ratings[:, None] - ratings[None, :])
    games = np.full_like(scores, MODEL_GAMES)
    scores[pairs.first, pairs.second] += pairs.score
    scores[pairs.second, pairs.first] += pairs.games - pairs.score
    games[pairs.first, pairs.second] += pairs.games
    games[pairs.second, pairs.first] += pairs.games
    rates: Array = scores / games
    return rates


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
    mixture = solver_of_league(state)(win_rates)
    members = tuple(MixtureMember(names[i], float(mixture[i])) for i in _kept(mixture).tolist())
    return [MixtureSolved(members, exploitability(win_rates, mixture), games, num_snapshots)]


def apply_mixture(state: LeagueState, event: MixtureSolved) -> None:
    """The newest mixture takes the place of the one before."""
    weights = {member.policy: member.weight for member in event.members}
    state.mixture = Mixture(weights, event.games, event.num_snapshots, event.exploitability)


def mixture_weights(state: LeagueState) -> Array | None:
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


def solver_of_league(state: LeagueState) -> Solver:
    """The solver that the settings name, or that the number of sides asks for."""
    assert state.settings is not None
    return solver_of(state.settings.meta_game.solver, num_sides=len(set(state.teams)))


def own_snapshots(state: LeagueState) -> list[str]:
    """Snapshots that were taken in this league, oldest first."""
    return [name for name, snapshot in state.snapshots.items() if snapshot.player]


def _participants(state: LeagueState) -> list[str]:
    """The newest snapshots, and those of the present mixture."""
    assert state.settings is not None
    names = own_snapshots(state)
    newest = set(names[-state.settings.meta_game.most_policies :])
    return [name for name in names if name in newest or name in state.mixture.weights]


def _kept(mixture: Array) -> NDArray[np.int64]:
    """Members with a weight worth naming, heaviest first."""
    order = np.argsort(-mixture, kind="stable")
    kept: NDArray[np.int64] = order[mixture[order] >= min(LEAST_WEIGHT, mixture.max())]
    return kept
