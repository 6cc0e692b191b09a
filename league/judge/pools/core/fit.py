"""Ratings of a pool: Bradley-Terry, most probable under a learnt prior, with fixed anchors, draws and paired games.

The expected score of a game is p = 1 / (1 + 10 ** (-d / 400)), a draw being half a win, as everywhere in this project.
Draws, and the common opening of paired games, make scores vary less (or more) than a coin of that mean. So the
likelihood is a quasi-likelihood: variance phi p (1 - p), where the dispersion phi is measured over all groups.

The prior says that policies are normal around a common mean. Its mean is learnt, and its spread where that is wide.
The mean is one more unknown, tied loosely to the anchors: a point estimate would count its own evidence twice.

Shape letters: N policies, of which R are rated and the others anchors; M pairs that have met; U = R + 2 nodes: 0 stands
for all anchors, 1 + r for the rated policy number r, the last for the mean of the prior. Ratings are in logits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import ELO_PER_LOGIT, INTERVAL_Z, win_probability
from league.core.metagame.sparse_solve import PairMatrix
from league.judge.pools.core.state import DRAWS, LOSSES, SQUARES, WINS, PoolState

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

MAX_DENSE = 2_000
"""Policies up to which the covariance is stored whole; its cost grows with their third power."""
MIN_SPREAD_ELO = 1_200.0
"""Least spread of the prior, which is worth a tenth of a game of equals: policies that are yet to join may be far from
all that were seen. What is learnt of the spread from few games, or won ones alone, is far too small. Of policies 1,500
Elo apart only this is learnt: 0.6 to 0.8 of the intervals of policies that won or lost every game hold the truth, and
0.86 to 0.96 of the others. With 2,000 they would, but as intervals are symmetric, eight wins of eight against an anchor
would then no longer show who is stronger."""
MEAN_SPREAD_ELO = 2_000.0
"""Standard deviation of the mean of the prior around the mean of the anchors."""
PRIOR_GROUPS = 20.0
"""Groups that the assumption of independent games without draws counts for."""
MIN_DISPERSION = 0.02
MEAN_PRECISION = (ELO_PER_LOGIT / MEAN_SPREAD_ELO) ** 2
MAX_NEWTON_STEPS, MAX_HALVINGS = 100, 40
MAX_DIRECT = 256
"""Policies up to which a Newton step is solved directly; beyond, by conjugate gradients over the pairs."""
MAX_ROUNDS, WARM_ROUNDS = 30, 1
"""Rounds of learning spread and dispersion; after an earlier fit little is left to learn."""
DIRECT_STEP, SPARSE_STEP = 1e-8, 1e-4
"""Logits that the last Newton step may still move a rating by."""
SPARSE_TOLERANCE = 1e-5
"""Of the residual of a variance: the common offset of all policies to a weakly tied anchor is reached last."""
ROUND_CHANGE = 3e-3
"""Relative change of spread and dispersion below which they are learnt."""


@dataclass(frozen=True)
class PoolGames:
    """The games of a pool.

    Fields:
      anchors: float64 [N], fixed ratings of anchors in logits, NaN for policies that are rated.
      first, second: int64 [M], indices, each pair once.
      games, score, squares: float64 [M], number of games, sum of the scores of the first, and the sum over the groups
        of its squared mean score.
      teams: games of a group.
    """

    anchors: Array
    first: Numbers
    second: Numbers
    games: Array
    score: Array
    squares: Array
    teams: int


@dataclass(frozen=True)
class Fit:
    """Ratings and how sure they are.

    Fields:
      ratings, deviations: float64 [N], in logits; deviations of anchors are 0.
      covariance: float64 [N, N], zero in the rows and columns of anchors; None for more than `MAX_DENSE` policies.
      mean, spread: of the prior, in logits. dispersion: phi.
    """

    ratings: Array
    deviations: Array
    covariance: Array | None
    mean: float
    spread: float
    dispersion: float

    def elo(self) -> tuple[Array, Array, Array]:
        """float64 [N] each: ratings, and the ends of their 95 % intervals."""
        elo, margin = ELO_PER_LOGIT * self.ratings, INTERVAL_Z * ELO_PER_LOGIT * self.deviations
        return elo, elo - margin, elo + margin


def games_of(state: PoolState) -> PoolGames:
    """The games of a pool as arrays."""
    assert state.game is not None
    pairs, totals = state.pairs.values, state.totals.values
    elo = [np.nan if policy.elo is None else policy.elo for policy in state.policies]
    return PoolGames(
        anchors=np.array(elo, dtype=np.float64) / ELO_PER_LOGIT,
        first=pairs[:, 0].copy(),
        second=pairs[:, 1].copy(),
        games=totals[:, [WINS, DRAWS, LOSSES]].sum(axis=1),
        score=totals[:, WINS] + totals[:, DRAWS] / 2.0,
        squares=totals[:, SQUARES].copy(),
        teams=state.game.teams,
    )


def fit_pool(games: PoolGames, *, start: Fit | None = None, max_dense: int = MAX_DENSE) -> Fit:
    """Rate the policies of a pool.

    Args:
      start: an earlier fit of the same pool, from which fewer steps are needed; it may know fewer policies.
      max_dense: policies up to which deviations are exact; beyond, they are estimated to about 20 %.
    Source: Bradley and Terry 1952; Wedderburn 1974 (quasi-likelihood); MacKay 1992 (a learnt prior, as in the EM
      algorithm); Newton's method, since the posterior is concave.
    """
    model = _Model(games)
    values = model.start_values(start)
    spread = MIN_SPREAD_ELO / ELO_PER_LOGIT if start is None else start.spread
    dispersion = 1.0 if start is None else start.dispersion
    exact = len(games.anchors) <= max_dense
    for _ in range(MAX_ROUNDS if start is None else WARM_ROUNDS):
        values, weights = model.most_probable(values, spread, dispersion)
        covariance = model.covariance(weights) if exact else None
        variances = model.sparse_variances(weights, origin=0) if covariance is None else np.diag(covariance)
        before = (spread, dispersion)
        spread = model.spread(values, weights, covariance)
        dispersion = model.dispersion(values, weights, covariance)
        if all(abs(new / old - 1.0) < ROUND_CHANGE for new, old in zip((spread, dispersion), before, strict=True)):
            break
    ratings, deviations = games.anchors.copy(), np.zeros(len(games.anchors))
    ratings[model.rated] = values[1:-1]
    deviations[model.rated] = np.sqrt(variances[1:-1])
    full = None
    if covariance is not None:
        full = np.zeros((len(ratings), len(ratings)))
        full[np.ix_(model.rated, model.rated)] = covariance[1:-1, 1:-1]
    return Fit(ratings, deviations, full, float(values[-1]), *before)


class _Model:
    """The edges between nodes: pairs that have met, then each rated policy and the mean, then the mean and node 0."""

    def __init__(self, games: PoolGames) -> None:
        self.games = games
        is_anchor = ~np.isnan(games.anchors)
        self.rated = np.flatnonzero(~is_anchor)
        self.size = len(self.rated) + 2
        node = np.zeros(len(games.anchors), dtype=np.int64)
        node[self.rated] = 1 + np.arange(len(self.rated))
        fixed = np.where(is_anchor, games.anchors, 0.0)
        self.first, self.second = node[games.first], node[games.second]
        self.offset = fixed[games.first] - fixed[games.second]
        mean = np.full(len(self.rated), self.size - 1)
        self.edges_first = np.concatenate([self.first, node[self.rated], [self.size - 1]])
        self.edges_second = np.concatenate([self.second, mean, [0]])
        self.centre = float(games.anchors[is_anchor].mean()) if is_anchor.any() else 0.0

    def start_values(self, start: Fit | None) -> Array:
        """float64 [U], known ratings, and the mean for policies that are new."""
        values = np.full(self.size, self.centre if start is None else start.mean)
        if start is not None:
            known = self.rated < len(start.ratings)
            values[1:-1][known] = start.ratings[self.rated[known]]
        values[0] = 0.0
        return values

    def most_probable(self, values: Array, spread: float, dispersion: float) -> tuple[Array, Array]:
        """float64 [U] most probable values, and float64 [M + R + 1] weights of the edges there."""
        direct = self.size <= MAX_DIRECT
        sparse = None if direct else PairMatrix(self.size, self.edges_first, self.edges_second, anchor=0)
        for _ in range(MAX_NEWTON_STEPS):
            gradient, weights = self._gradient(values, spread, dispersion)
            step = np.zeros(self.size)
            if sparse is None:
                step[1:] = np.linalg.solve(self._information(weights), gradient[1:])
            else:
                step = sparse.solve(weights, gradient[:, None], tolerance=1e-4)[:, 0]
            values = self._climb(values, step, spread, dispersion)
            if np.abs(step).max(initial=0.0) < (DIRECT_STEP if direct else SPARSE_STEP):
                break
        return values, self._gradient(values, spread, dispersion)[1]

    def covariance(self, weights: Array) -> Array:
        """float64 [U, U], zero for node 0."""
        full = np.zeros((self.size, self.size))
        full[1:, 1:] = np.linalg.inv(self._information(weights))
        return full

    def sparse_variances(self, weights: Array, *, origin: int) -> Array:
        """float64 [U], estimates of the variances of the differences from one node."""
        matrix = PairMatrix(self.size, self.edges_first, self.edges_second, anchor=origin)
        return matrix.inverse_diagonal(weights, tolerance=SPARSE_TOLERANCE)

    def spread(self, values: Array, weights: Array, covariance: Array | None) -> float:
        """The expected spread of the rated policies around the mean: one step of the EM algorithm."""
        if covariance is None:
            unsure = self.sparse_variances(weights, origin=self.size - 1)[1:-1]
        else:
            unsure = np.diag(covariance)[1:-1] + covariance[-1, -1] - 2.0 * covariance[1:-1, -1]
        squares = float(((values[1:-1] - values[-1]) ** 2 + unsure).sum())
        return max(float(np.sqrt(squares / max(len(unsure), 1))), MIN_SPREAD_ELO / ELO_PER_LOGIT)

    def dispersion(self, values: Array, weights: Array, covariance: Array | None) -> float:
        """Variance of the groups' mean scores over that of independent games without draws.

        Residuals are smaller than errors by the leverage of their own group, which is taken into account.
        """
        games = self.games
        expected = win_probability(values[self.first] - values[self.second] + self.offset)
        groups, group_score = games.games / games.teams, games.score / games.teams
        residual = games.squares - 2.0 * expected * group_score + groups * expected**2
        variance = expected * (1.0 - expected) / games.teams
        leverage: Array = np.zeros(len(groups))
        if covariance is not None:
            diagonal = np.diag(covariance)
            distance = diagonal[self.first] + diagonal[self.second] - 2.0 * covariance[self.first, self.second]
            leverage = np.minimum(weights[: len(groups)] * distance, 0.5 * groups)
        assumed = PRIOR_GROUPS * 0.25 / games.teams
        found = (residual.sum() + assumed) / ((variance * (groups - leverage)).sum() + assumed)
        return float(np.clip(found, MIN_DISPERSION, float(games.teams)))

    def _differences(self, values: Array) -> tuple[Array, Array, float]:
        """Of the pairs; of the rated policies to the mean; of the mean to the anchors."""
        pairs = values[self.first] - values[self.second] + self.offset
        return pairs, values[1:-1] - values[-1], float(values[-1]) - self.centre

    def _gradient(self, values: Array, spread: float, dispersion: float) -> tuple[Array, Array]:
        pairs, apart, off = self._differences(values)
        won, lost = win_probability(pairs), win_probability(-pairs)
        surplus = (self.games.score * lost - (self.games.games - self.games.score) * won) / dispersion
        flow = np.concatenate([surplus, -apart / spread**2, [-off * MEAN_PRECISION]])
        gradient: Array = np.zeros(self.size)
        gradient += np.bincount(self.edges_first, flow, self.size)
        gradient -= np.bincount(self.edges_second, flow, self.size)
        played = self.games.games * won * lost / dispersion
        return gradient, np.concatenate([played, np.full(len(apart), 1.0 / spread**2), [MEAN_PRECISION]])

    def _log_posterior(self, values: Array, spread: float, dispersion: float) -> float:
        pairs, apart, off = self._differences(values)
        lost = self.games.games - self.games.score
        played = self.games.score * np.logaddexp(0.0, -pairs) + lost * np.logaddexp(0.0, pairs)
        prior = (apart**2).sum() / spread**2 + off**2 * MEAN_PRECISION
        return -float(played.sum() / dispersion + prior / 2.0)

    def _climb(self, values: Array, step: Array, spread: float, dispersion: float) -> Array:
        """Go along the Newton step, halved until the posterior does not fall."""
        best = self._log_posterior(values, spread, dispersion)
        for halvings in range(MAX_HALVINGS):
            found: Array = values + step / 2**halvings
            if self._log_posterior(found, spread, dispersion) >= best - 1e-12 * abs(best):
                return found
        return values

    def _information(self, weights: Array) -> Array:
        """float64 [R + 1, R + 1], the negative Hessian over all nodes but the first."""
        first, second, size = self.edges_first, self.edges_second, self.size
        crossed: Array = np.zeros((size, size))
        crossed += np.bincount(first * size + second, weights, size * size).reshape(size, size)
        full: Array = -(crossed + crossed.T)
        full[np.diag_indices(size)] += np.bincount(first, weights, size) + np.bincount(second, weights, size)
        return full[1:, 1:]
