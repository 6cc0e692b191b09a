"""Bradley-Terry ratings of frozen policies, from games in which every seat was frozen, with the parent as the prior.

What is modelled is the expected score of a game (`league.core.state.scoring`): d Elo more than another means to expect
the score p = 1 / (1 + 10 ** (-d / 400)) against it. Where games won are counted, p is the chance to win, a draw being
half a win. Where returns are counted, p stands for a mean margin of (2 p - 1) of the scale: 100 Elo are 0.28 of it, 10
Elo 0.029, whatever share of the games is won. Where the scale is the largest margin, such a score varies less than a
coin of the same mean. Intervals are then rather too wide than too narrow.

Shape letters: N policies rated, M pairs that have met.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.sparse_solve import PairMatrix
from league.core.state.payoff import GAMES, SCORE
from league.core.state.records import is_from_outside
from league.core.state.state import LeagueState, PlayerState

ELO_PER_LOGIT = 400.0 / math.log(10.0)
INTERVAL_Z = 1.96
"""Standard deviations either side of a rating that hold 95 % of a normal posterior."""
ROOT_DRAWS = 0.1
"""Virtual draws with the anchor of a policy without a rated parent: enough to keep its rating finite, no more."""
MAX_NEWTON_STEPS = 100
MAX_HALVINGS = 40
DENSE_STEP, SPARSE_STEP = 1e-9, 1e-5
"""Logits that the last Newton step may still move a rating by."""
MAX_DENSE = 256
"""Policies up to which the information matrix is stored whole; its inverse grows with their third power."""
MAX_FROZEN = 32
"""Newest frozen policies that tie the ratings of learning players together."""

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RatingRow:
    """One policy's rating in Elo (anchor = 0), its 95 % interval, and the games that it rests on."""

    policy: str
    elo: float
    low: float
    high: float
    games: int


@dataclass(frozen=True)
class PairGames:
    """Games between frozen policies.

    Fields:
      first, second: int64 [M], indices of the two policies among those rated; a pair at most once.
      score: float64 [M], sum of the scores of the first, at most `games`.
      games: float64 [M].
    """

    first: Numbers
    second: Numbers
    score: Array
    games: Array


def bradley_terry(
    num_policies: int,
    pairs: PairGames,
    *,
    parents: Numbers,
    anchor: int,
    parent_draws: float,
    max_dense: int = MAX_DENSE,
) -> tuple[Array, Array]:
    """Most probable ratings and their standard deviations.

    Args:
      num_policies: N.
      parents: int64 [N], index of each policy's parent, -1 without one.
      anchor: index of the policy whose rating is 0 and certain.
      parent_draws: virtual draws of a policy with its parent.
      max_dense: policies up to which deviations are exact; beyond, they are estimated to about 10 %.
    Returns:
      float64 [N] ratings and float64 [N] standard deviations, both in logits.
    Source: Hunter 2004 (the model); katago-server (the parent as prior); Newton's method as the likelihood is concave.
    """
    games = _with_prior(pairs, parents, anchor, parent_draws)
    ratings = _most_probable(num_policies, games, anchor, max_dense)
    weights = _information(ratings, games)
    if num_policies > max_dense:
        matrix = PairMatrix(num_policies, games.first, games.second, anchor=anchor)
        return ratings, np.sqrt(matrix.inverse_diagonal(weights))
    free = np.flatnonzero(np.arange(num_policies) != anchor)
    deviations = np.zeros(num_policies)
    deviations[free] = np.sqrt(np.diag(np.linalg.inv(_dense(num_policies, games, weights)[np.ix_(free, free)])))
    return ratings, deviations


def most_probable_ratings(
    num_policies: int, pairs: PairGames, *, parents: Numbers, anchor: int, parent_draws: float
) -> Array:
    """float64 [N], as `bradley_terry` without the standard deviations, which cost more than the ratings."""
    return _most_probable(num_policies, _with_prior(pairs, parents, anchor, parent_draws), anchor, MAX_DENSE)


def _most_probable(num_policies: int, games: PairGames, anchor: int, max_dense: int) -> Array:
    """Newton's method; thousands of policies take the step by conjugate gradients, over the pairs that have met."""
    free = np.flatnonzero(np.arange(num_policies) != anchor)
    sparse = num_policies > max_dense
    matrix = PairMatrix(num_policies, games.first, games.second, anchor=anchor) if sparse else None
    ratings = np.zeros(num_policies)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, weights = _gradient(ratings, games), _information(ratings, games)
        step = np.zeros(num_policies)
        if matrix is not None:
            step = matrix.solve(weights, gradient[:, None], tolerance=1e-4)[:, 0]
        else:
            step[free] = np.linalg.solve(_dense(num_policies, games, weights)[np.ix_(free, free)], gradient[free])
        ratings = _climb(ratings, step, games)
        if np.abs(step).max(initial=0.0) < (SPARSE_STEP if sparse else DENSE_STEP):
            break
    return ratings


def league_ratings(state: LeagueState) -> tuple[RatingRow, ...]:
    """Ratings of all snapshots and rated bots, strongest first, those without a game last; empty for no comparison."""
    inputs = rating_inputs(state)
    return () if inputs is None else rate(inputs)


@dataclass(frozen=True)
class RatingInputs:
    """A copy of the data that ratings are made from, so that the league may continue meanwhile.

    Fields:
      names: [N] policies. games: int64 [N], rating games of each.
      pairs, parents, anchor, parent_draws: as for `bradley_terry`.
    """

    names: tuple[str, ...]
    games: Numbers
    pairs: PairGames
    parents: Numbers
    anchor: int
    parent_draws: float


def rating_inputs(state: LeagueState) -> RatingInputs | None:
    """A copy of the games between frozen policies; None where nothing can be compared."""
    frozen = state.population.frozen()
    if state.config is None or not state.is_competitive or not len(frozen):
        return None
    names = tuple(state.population.names[number] for number in frozen.tolist())
    places = {name: place for place, name in enumerate(names)}
    parents = [state.snapshots[name].parent if name in state.snapshots else None for name in names]
    return RatingInputs(
        names=names,
        games=state.rating_games.values[frozen],
        pairs=frozen_pairs(state, frozen),
        parents=np.array([-1 if parent is None else places[parent] for parent in parents], dtype=np.int64),
        anchor=places.get(anchor_of(state), 0),
        parent_draws=state.config.ratings.parent_draws,
    )


def rate(inputs: RatingInputs) -> tuple[RatingRow, ...]:
    """Ratings, strongest first; after them those without a game, whose rating is their parent's and says nothing."""
    ratings, deviations = bradley_terry(
        len(inputs.names),
        inputs.pairs,
        parents=inputs.parents,
        anchor=inputs.anchor,
        parent_draws=inputs.parent_draws,
    )
    elo, margin = ELO_PER_LOGIT * ratings, INTERVAL_Z * ELO_PER_LOGIT * deviations
    rows = [
        RatingRow(name, float(elo[i]), float(elo[i] - margin[i]), float(elo[i] + margin[i]), int(inputs.games[i]))
        for i, name in enumerate(inputs.names)
    ]
    return tuple(sorted(rows, key=lambda row: (row.games == 0, -row.elo, row.policy)))


def present_ratings(state: LeagueState, chosen: list[int]) -> tuple[Array, Array]:
    """Ratings in logits of learning players as they play now, with standard deviations, relative to one another.

    From all games of theirs as they weigh today, with one another and with snapshots that tie them together.

    Args:
      chosen: numbers of the players.
    """
    assert state.config is not None
    payoff, population = state.payoff, state.population
    # Each pair has two cells that hold the same games from either side; the one with the lower index first is taken.
    rated = np.concatenate([np.array(chosen), population.frozen()[-MAX_FROZEN:]]).astype(np.int64)
    place = np.full(len(population), -1, dtype=np.int64)
    place[rated] = np.arange(len(rated))
    home, away = place[payoff.home], place[payoff.away]
    cells = np.flatnonzero((home >= 0) & (away >= 0) & (home < away))
    weights = payoff.present(cells, population.staleness_clock.values)
    pairs = PairGames(home[cells], away[cells], weights[:, SCORE], weights[:, GAMES])
    owners = [state.players[population.names[number]].parent for number in chosen]
    parents = [-1 if parent is None else int(place[population.index[parent]]) for parent in owners]
    parents += [-1] * (len(rated) - len(chosen))
    # The anchor is the first player, so that the deviations of the others are those of their difference from it.
    ratings, deviations = bradley_terry(
        len(rated),
        pairs,
        parents=np.array(parents, dtype=np.int64),
        anchor=0,
        parent_draws=state.config.ratings.parent_draws,
    )
    return ratings[: len(chosen)], deviations[: len(chosen)]


def anchor_of(state: LeagueState) -> str:
    """The policy that Elo counts from: the one in the settings, else the first player's first snapshot.

    Until there is one, any first snapshot, or the first bot.
    """
    assert state.config is not None
    named = state.config.ratings.anchor
    if named in state.population.index:
        return named
    firsts = (player.initial for player in state.players.values() if player.initial is not None)
    return next(firsts, next(iter(state.config.bots), ""))


def strongest(rows: tuple[RatingRow, ...]) -> RatingRow | None:
    """The snapshot whose rating is surest to be high: the highest lower bound. None without a snapshot."""
    snapshots = [row for row in rows if not is_from_outside(row.policy)]
    return max(snapshots, key=lambda row: row.low, default=None)


def newest_rating(player: PlayerState, ratings: Mapping[str, RatingRow]) -> RatingRow | None:
    """The rating of a player's newest snapshot that has one; None before the first rated game."""
    return next(rated_snapshots(player, ratings), None)


def rated_snapshots(player: PlayerState, ratings: Mapping[str, RatingRow]) -> Iterator[RatingRow]:
    """The ratings of a player's snapshots that rest on games, newest first."""
    rows = (ratings.get(name) for name in player.snapshot_ids())
    return (row for row in rows if row is not None and row.games)


def frozen_pairs(state: LeagueState, chosen: Numbers) -> PairGames:
    """Games between the policies numbered `chosen` (frozen ones, ascending), each pair once, by their index in it."""
    place = np.full(len(state.population), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    payoff = state.payoff
    home, away = place[payoff.home], place[payoff.away]
    cells = np.flatnonzero((home >= 0) & (away >= 0) & (home < away))
    return PairGames(
        first=home[cells],
        second=away[cells],
        score=payoff.scores_of(cells).sum(axis=1),
        games=payoff.totals_of(cells).sum(axis=(1, 2)).astype(np.float64),
    )


def win_probability(difference: Array) -> Array:
    """Chance that the first wins where its rating is `difference` logits above the second's; exact in both tails."""
    probability: Array = np.exp(-np.logaddexp(0.0, -difference))
    return probability


def _with_prior(pairs: PairGames, parents: Numbers, anchor: int, parent_draws: float) -> PairGames:
    """The games played, and the virtual draws of everyone with its parent or, without one, with the anchor."""
    rooted = parents < 0
    child = np.flatnonzero(~(rooted & (np.arange(len(parents)) == anchor)))
    virtual = np.where(rooted, ROOT_DRAWS, parent_draws)[child]
    return PairGames(
        first=np.concatenate([pairs.first, child]),
        second=np.concatenate([pairs.second, np.where(rooted, anchor, parents)[child]]),
        score=np.concatenate([pairs.score, 0.5 * virtual]),
        games=np.concatenate([pairs.games, virtual]),
    )


def _climb(ratings: Array, step: Array, games: PairGames) -> Array:
    """Go along the Newton step, halved until the posterior does not fall: far out the quadratic model overshoots."""
    start, best = ratings, _log_posterior(ratings, games)
    for halvings in range(MAX_HALVINGS):
        ratings = start + step / 2**halvings
        if _log_posterior(ratings, games) >= best:
            return ratings
    return start


def _log_posterior(ratings: Array, games: PairGames) -> float:
    difference = ratings[games.first] - ratings[games.second]
    lost = games.games - games.score
    return -float((games.score * np.logaddexp(0.0, -difference) + lost * np.logaddexp(0.0, difference)).sum())


def _gradient(ratings: Array, games: PairGames) -> Array:
    """float64 [N], of the log posterior."""
    difference = ratings[games.first] - ratings[games.second]
    won, lost = win_probability(difference), win_probability(-difference)
    surplus = games.score * lost - (games.games - games.score) * won
    gradient: Array = np.zeros(len(ratings))
    gradient += np.bincount(games.first, surplus, len(ratings))
    gradient -= np.bincount(games.second, surplus, len(ratings))
    return gradient


def _information(ratings: Array, games: PairGames) -> Array:
    """float64 [M], weight of each pair in the negative Hessian."""
    difference = ratings[games.first] - ratings[games.second]
    return games.games * win_probability(difference) * win_probability(-difference)


def _dense(size: int, games: PairGames, weights: Array) -> Array:
    """float64 [N, N], the negative Hessian."""
    information = np.zeros((size, size))
    first, second = games.first, games.second
    for row, column, sign in ((first, first, 1.0), (second, second, 1.0), (first, second, -1.0), (second, first, -1.0)):
        np.add.at(information, (row, column), sign * weights)
    return information
