"""The game between whole snapshots: which mixture of them no single one beats, and when it is solved again.

Shape letter: N policies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.metagame.ratings import PairGames, bradley_terry, frozen_pairs, most_probable_ratings, win_probability
from league.core.metagame.solvers import exploitability, solved
from league.core.state.events import MixtureMember, MixtureSolved
from league.core.state.state import LeagueState, Mixture

Array = NDArray[np.float64]

MODEL_GAMES = 2.0
"""Games with which the rating model's forecast enters a pair's win rate; a pair that never met has that alone."""
MIN_WEIGHT = 1e-3
"""Members of a mixture with less weight are left out."""
MIN_GAMES = 20


def snapshot_win_rates(state: LeagueState, names: Sequence[str]) -> Array:
    """float64 [N, N] of snapshots, oldest first: games played, filled up by what the ratings forecast."""
    assert state.config is not None
    pairs, parents = _games_between(state, names)
    return pair_win_rates(pairs, parents, state.config.ratings.parent_draws)


def pair_win_rates(pairs: PairGames, parents: NDArray[np.int64], parent_draws: float) -> Array:
    """float64 [N, N], as `snapshot_win_rates`, from games alone.

    Args:
      parents: int64 [N], as for `bradley_terry`; the first policy is the anchor.
    """
    ratings = most_probable_ratings(len(parents), pairs, parents=parents, anchor=0, parent_draws=parent_draws)
    return _filled_up(pairs, ratings)[0]


def estimated_win_rates(state: LeagueState, names: Sequence[str]) -> tuple[Array, Array]:
    """`snapshot_win_rates`, and float64 [N, N] their standard errors, at most a half.

    A win rate rests on games of the pair and on `MODEL_GAMES` as the ratings forecast them: the noise of the games and
    the uncertainty of the ratings come together as these weigh in it.
    """
    assert state.config is not None
    pairs, parents = _games_between(state, names)
    ratings, deviations = bradley_terry(
        len(names), pairs, parents=parents, anchor=0, parent_draws=state.config.ratings.parent_draws
    )
    win_rates, games = _filled_up(pairs, ratings)
    chance = win_probability(ratings[:, None] - ratings[None, :])
    forecast = np.minimum(chance * (1.0 - chance) * np.hypot(deviations[:, None], deviations[None, :]), 0.5)
    played = games - MODEL_GAMES
    errors = np.sqrt(played * win_rates * (1.0 - win_rates) + (MODEL_GAMES * forecast) ** 2) / games
    np.fill_diagonal(errors, 0.0)
    return win_rates, errors


def mixture_event(state: LeagueState) -> list[MixtureSolved]:
    """The mixture, solved again where it is due; else nothing.

    Due after a new snapshot, and when the games between frozen policies have grown by a fraction of their number.
    """
    assert state.config is not None
    config, games = state.config.meta_game, state.totals.rating_games
    num_snapshots = len(own_snapshots(state))
    if not config.solve or not state.is_competitive or num_snapshots < 2:
        return []
    known = state.mixture
    grown = games >= known.games * (1.0 + config.growth) + MIN_GAMES
    if num_snapshots == known.num_snapshots and not grown:
        return []
    names = _participants(state)
    win_rates = snapshot_win_rates(state, names)
    mixture = solved(state.config.meta_game.solver, win_rates, num_sides=len(set(state.teams)))
    members = tuple(MixtureMember(names[i], float(mixture[i])) for i in heaviest(mixture).tolist())
    return [MixtureSolved(members, exploitability(win_rates, mixture), games, num_snapshots)]


def apply_mixture(state: LeagueState, event: MixtureSolved) -> None:
    """The newest mixture replaces the one before."""
    weights = {member.policy: member.weight for member in event.members}
    state.mixture = Mixture(weights, event.games, event.num_snapshots, event.exploitability)


def mixture_weights(state: LeagueState) -> Array | None:
    """float64 [P], the mixture with its fraction of exploration over all snapshots, sums to 1.

    Members that cannot be met are left out. None before the first mixture, and where no member is left.
    """
    assert state.config is not None
    result = np.zeros(len(state.population))
    for policy, weight in state.mixture.weights.items():
        if state.is_present(policy):
            result[state.population.index[policy]] = weight
    if not result.any():
        return None
    result /= result.sum()
    explore, snapshots = state.config.meta_game.explore, state.population.snapshots()
    result *= 1.0 - explore
    result[snapshots] += explore / len(snapshots)
    return result


def heaviest(mixture: Array) -> NDArray[np.int64]:
    """Indices of the members with a weight worth naming, heaviest first."""
    order = np.argsort(-mixture, kind="stable")
    kept: NDArray[np.int64] = order[mixture[order] >= min(MIN_WEIGHT, mixture.max())]
    return kept


def own_snapshots(state: LeagueState) -> list[str]:
    """Snapshots that were taken in this league and can be met, oldest first."""
    return [name for name, snapshot in state.snapshots.items() if snapshot.player and state.is_present(name)]


def exported_snapshots(state: LeagueState) -> list[str]:
    """Those that a league's exports choose among, oldest first: of its main agents; of every player without one.

    Exploiters are there to find the faults of main agents. No player looks for theirs.
    """
    own = own_snapshots(state)
    return [name for name in own if state.snapshots[name].role == MAIN_ROLE] or own


def _games_between(state: LeagueState, names: Sequence[str]) -> tuple[PairGames, NDArray[np.int64]]:
    """Games of snapshots with one another, and the index of each one's parent among them, -1 without one."""
    numbers = np.array([state.population.index[name] for name in names], dtype=np.int64)
    places = {name: place for place, name in enumerate(names)}
    parents = [state.snapshots[name].parent for name in names]
    known = [-1 if parent is None else places.get(parent, -1) for parent in parents]
    return frozen_pairs(state, numbers), np.array(known, dtype=np.int64)


def _filled_up(pairs: PairGames, ratings: Array) -> tuple[Array, Array]:
    """Win rates float64 [N, N] from games and from `MODEL_GAMES` of each pair as forecast, and the number of both."""
    scores = MODEL_GAMES * win_probability(ratings[:, None] - ratings[None, :])
    games = np.full_like(scores, MODEL_GAMES)
    scores[pairs.first, pairs.second] += pairs.score
    scores[pairs.second, pairs.first] += pairs.games - pairs.score
    games[pairs.first, pairs.second] += pairs.games
    games[pairs.second, pairs.first] += pairs.games
    return scores / games, games


def _participants(state: LeagueState) -> list[str]:
    """The newest snapshots, and those of the present mixture."""
    assert state.config is not None
    names = own_snapshots(state)
    newest = set(names[-state.config.meta_game.max_policies :])
    return [name for name in names if name in newest or name in state.mixture.weights]
