"""Choices by sequential halving of sampled moves, and the policy that completed values make up.

Shape letters: K trees, A actions, F nodes at which a move is chosen, m considered moves, n simulations.
Source: Danihelka et al. 2022, Policy improvement by planning with Gumbel; constants and order of choices as in mctx.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.search.trees import KNOWN, PRIOR, TOTAL, VISITS, Trees

VALUE_SCALE, FIRST_VISITS = np.float32(0.1), np.float32(50.0)
"""sigma(q) = (FIRST_VISITS + most visits) * VALUE_SCALE * q, of values rescaled to [0, 1]."""

MAX_CONSIDERED = 16
"""Most moves among which the root halves."""

MIN_SCORE = np.float32(-1e9)
"""Of a considered move, so that it stays above all others."""
LOST_SCORE = MIN_SCORE * 2
"""Of a move that is proven lost."""


class Gumbel:
    """Chooses moves at the root by sequential halving, below it by the distance to the improved policy.

    Args:
      noise: float32 [K, A], Gumbel(0, 1) of the roots' moves; zeros to play at full strength.
      num_simulations: n that each root will have.
    """

    def __init__(self, noise: NDArray[np.float32], *, num_simulations: int) -> None:
        self._noise = noise
        self._table = considered_visits(min(MAX_CONSIDERED, noise.shape[1]), num_simulations)

    def choose(self, trees: Trees, node: NDArray[np.int64], count: int, *, depth: int) -> NDArray[np.int64]:
        """Moves [F, count] for the walks that come one after another to each of the nodes [F]."""
        scores, moves = completed_values(trees, node), trees.moves.take(node, axis=0)
        visits, legal = moves[:, VISITS], moves[:, KNOWN] != -np.inf
        improved = _softmax(trees.logits[node] + scores)
        chosen = np.empty((len(node), count), np.int64)
        rows = np.arange(len(node))
        for walk in range(count):
            if walk:
                visits[rows, chosen[:, walk - 1]] += 1.0
            if depth == 0:
                score = self._root_scores(trees, node, scores, visits, legal)
            else:
                score = improved - visits / (1.0 + visits.sum(axis=1, keepdims=True))
            chosen[:, walk] = _legal_only(score, legal).argmax(axis=1)
        return chosen

    def best(self, trees: Trees) -> NDArray[np.int64]:
        """[K], the best of the most visited moves at the roots; of a proven root the best result."""
        root = trees.roots
        moves = trees.moves[root]
        known, visits = moves[:, KNOWN], moves[:, VISITS]
        most = np.where(known == -np.inf, -1.0, visits).max(axis=1, keepdims=True)
        score = self._considered(trees, root, completed_values(trees, root), visits, most)
        worth = np.where(np.isnan(known), -np.inf, known)
        worth = np.where(trees.proven[root, None], worth, np.where(known <= -trees.win, LOST_SCORE, score))
        chosen: NDArray[np.int64] = _legal_only(worth, known != -np.inf).argmax(axis=1)
        return chosen

    def _root_scores(
        self,
        trees: Trees,
        node: NDArray[np.int64],
        scores: NDArray[np.float32],
        visits: NDArray[np.float32],
        legal: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        number = np.minimum(visits.sum(axis=1).astype(np.int64), self._table.shape[1] - 1)
        num_considered = np.minimum(legal.sum(axis=1), len(self._table) - 1)
        return self._considered(trees, node, scores, visits, self._table[num_considered, number][:, None])

    def _considered(
        self,
        trees: Trees,
        node: NDArray[np.int64],
        scores: NDArray[np.float32],
        visits: NDArray[np.float32],
        required: NDArray[np.generic],
    ) -> NDArray[np.float32]:
        """Noise + logits + values [F, A], -inf for moves that do not have the `required` [F, 1] visits."""
        sum_: NDArray[np.float32] = np.maximum(
            MIN_SCORE, self._noise[node // trees.num_nodes] + trees.logits[node] + scores
        )
        return np.where(visits == required, sum_, np.float32(-np.inf))


def considered_visits(num_considered: int, num_simulations: int) -> NDArray[np.int64]:
    """[m + 1, n]: visits that a move must have to be tried next, by the number of moves and of simulations so far."""
    rows = [_visits_of(number, num_simulations) for number in range(num_considered + 1)]
    return np.array(rows, np.int64).reshape(len(rows), num_simulations)


def _visits_of(num_considered: int, num_simulations: int) -> list[int]:
    if num_considered <= 1:
        return list(range(num_simulations))
    halvings = math.ceil(math.log2(num_considered))
    sequence: list[int] = []
    visits = [0] * num_considered
    left = num_considered
    while len(sequence) < num_simulations:
        for _ in range(max(1, int(num_simulations / (halvings * left)))):
            sequence.extend(visits[:left])
            for place in range(left):
                visits[place] += 1
        left = max(2, left // 2)
    return sequence[:num_simulations]


def completed_values(trees: Trees, node: NDArray[np.int64]) -> NDArray[np.float32]:
    """sigma of the completed Q [F, A]: an untried move has the value of the others and of the node mixed."""
    moves = trees.moves.take(node, axis=0)
    visits, known = moves[:, VISITS], moves[:, KNOWN]
    tried = visits > 0
    values = moves[:, TOTAL] / np.maximum(visits, 1.0)
    np.copyto(values, known, where=tried & np.isfinite(known))
    prior = np.maximum(moves[:, PRIOR], np.finfo(np.float32).tiny)
    own = trees.value[node] + trees.earned[node, trees.seat[node]]
    of_tried = np.where(tried, prior, 0.0)
    weighted = (of_tried * values).sum(axis=1) / np.maximum(of_tried.sum(axis=1), np.finfo(np.float32).tiny)
    number = visits.sum(axis=1)
    mixed = (own + number * weighted) / (number + 1.0)
    values = np.where(tried, values, mixed[:, None])
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    values = (values - low) / np.maximum(high - low, np.float32(1e-8))
    scaled: NDArray[np.float32] = (FIRST_VISITS + visits.max(axis=1, keepdims=True)) * VALUE_SCALE * values
    return scaled


def improved_policy(trees: Trees) -> NDArray[np.float32]:
    """[K, A], softmax of logits + sigma(completed Q) at the roots; of a proven root uniform over its best results."""
    root = trees.roots
    policy = _softmax(trees.logits[root] + completed_values(trees, root))
    proven = trees.proven[root]
    if proven.any():
        known = trees.moves[root, KNOWN]
        worth = np.where(np.isnan(known), -np.inf, known)
        best = (worth == worth.max(axis=1, keepdims=True)).astype(np.float32)
        policy[proven] = (best / best.sum(axis=1, keepdims=True))[proven]
    return policy


def _legal_only(score: NDArray[np.floating], legal: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Scores [F, A] of which every legal move's is above every other's, also where no move is considered."""
    return np.where(legal, np.maximum(score, LOST_SCORE * 2), -np.inf)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    policy: NDArray[np.float32] = shifted / shifted.sum(axis=1, keepdims=True)
    return policy
