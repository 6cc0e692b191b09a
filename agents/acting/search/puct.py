"""Choices by predictor and upper confidence bound, and the policy that visits make up.

Shape letters: K trees, A actions, F nodes at which a move is chosen.
Sources: Silver et al. 2017, AlphaGo Zero, methods; Silver et al. 2018, AlphaZero, and its pseudocode.
"""

from __future__ import annotations

from math import isnan

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.search.trees import KNOWN, PRIOR, TOTAL, VISITS, Trees

C_BASE, C_INIT = np.float32(19_652.0), np.float32(1.25)
"""c(s) = log((1 + N + C_BASE) / C_BASE) + C_INIT for N visits of a node."""

NOISE_MOVES = 10.0
"""The noise is Dirichlet(NOISE_MOVES / legal moves): 0.03 for Go, 0.3 for chess, 1.4 for Connect Four."""

MAX_SCALARS = 400
"""Most scores of one call that are computed as plain numbers: below it, the calls of array operations cost more."""


class Puct:
    """Chooses the move of the highest Q + c(s) P sqrt(N) / (1 + n), of which a proven move has only its result.

    A move that was never tried has Q = 0, the middle of the return range. Of several walks that come to a node in one
    wave, each counts for those after it as a visit that lost.
    """

    def __init__(self) -> None:
        self._weights = _weights(0)

    def choose(self, trees: Trees, node: NDArray[np.int64], count: int, *, depth: int) -> NDArray[np.int64]:
        """Moves [F, count] for the walks that come one after another to each of the nodes [F]."""
        del depth
        moves = trees.moves.take(node, axis=0)
        visits, total, prior, known = moves[:, VISITS], moves[:, TOTAL], moves[:, PRIOR], moves[:, KNOWN]
        is_known = ~np.isnan(known)
        number = visits.sum(axis=1).astype(np.int64)
        if number.max() + count > len(self._weights):
            self._weights = _weights(2 * int(number.max()) + count)
        if count > 1 and moves.shape[0] * moves.shape[2] * count <= MAX_SCALARS:
            return np.array([self._chosen_one_by_one(one, count) for one in moves.tolist()], np.int64)
        chosen = np.empty((len(node), count), np.int64)
        rows = np.arange(len(node))
        for walk in range(count):
            if walk:
                visits[rows, chosen[:, walk - 1]] += 1.0
                total[rows, chosen[:, walk - 1]] -= 1.0
            score = prior * self._weights[number + walk][:, None]
            score /= visits + 1.0
            score += total / np.maximum(visits, 1.0)
            np.copyto(score, known, where=is_known)
            score.argmax(axis=1, out=chosen[:, walk])
        return chosen

    def _chosen_one_by_one(self, moves: list[list[float]], count: int) -> list[int]:
        """Moves [count] at one node, of its lines [4, A]; the same as above in plain numbers."""
        visits, total, prior, known = moves
        number, chosen = int(sum(visits)), list[int]()
        for walk in range(count):
            weight = float(self._weights[number + walk])
            score = [
                p * weight / (n + 1.0) + t / (n or 1.0) if isnan(k) else k
                for n, t, p, k in zip(visits, total, prior, known, strict=True)
            ]
            action = score.index(max(score))
            visits[action] += 1.0
            total[action] -= 1.0
            chosen.append(action)
        return chosen


def _weights(most: int) -> NDArray[np.float32]:
    """float32 [most + 1], c(s) sqrt(N) by the visits of a node's moves; N counts its own too."""
    number = np.arange(1, most + 2, dtype=np.float32)
    weights: NDArray[np.float32] = np.sqrt(number) * (np.log((number + (C_BASE + 1)) / C_BASE) + C_INIT)
    return weights


def add_noise(trees: Trees, tree: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> None:
    """Mix Dirichlet noise into the prior of the roots of some trees; `fraction` of it is noise."""
    root = trees.roots[tree]
    moves = trees.moves[root]
    legal = moves[:, KNOWN] != -np.inf
    shape = NOISE_MOVES / legal.sum(axis=1, keepdims=True)
    noise = np.where(legal, rng.standard_gamma(np.broadcast_to(shape, legal.shape)), 0.0)
    noise /= np.maximum(noise.sum(axis=1, keepdims=True), 1e-30)
    trees.moves[root, PRIOR] = (1.0 - fraction) * moves[:, PRIOR] + fraction * noise


def visit_policy(trees: Trees) -> NDArray[np.float32]:
    """[K, A], the share of visits of each move at the roots.

    Of a proven root it is uniform over the moves of its result; a proven loss has no share while another move is left.
    """
    moves = trees.moves[trees.roots]
    visits, known = moves[:, VISITS], moves[:, KNOWN]
    lost = known <= -trees.win
    left = np.where(lost, 0.0, visits)
    weights = np.where(left.sum(axis=1, keepdims=True) > 0, left, np.where(known != -np.inf, visits, 0.0))
    proven = trees.proven[trees.roots]
    if proven.any():
        worth = np.where(np.isnan(known), -np.inf, known)
        weights[proven] = (worth == worth.max(axis=1, keepdims=True))[proven]
    empty = weights.sum(axis=1) == 0  # no time for a single walk: what the network says
    weights[empty] = moves[empty, PRIOR]
    policy: NDArray[np.float32] = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return policy
