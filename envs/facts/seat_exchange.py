"""Permutation test of two seats: it exchanges them in whole games, for the decisions of one game are not independent.

In a symmetric game at random play nothing changes if two seats swap places. So each game's difference between them,
first minus second, may as well have the other sign. The statistic of a group of columns is the sum of squares of their
totals, each divided by its variance under such signs. The largest group is compared with that of random signs.

Shape letters: D decisions, B blocks of games, C columns (cells or features).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_BLOCKS = 200
"""Games are exchanged in at most so many blocks: their number bounds the time, and hardly changes the power."""

MAX_CELLS = 256
"""Cells that are compared, those with most decisions."""

SIGNS = np.array([-1.0, 1.0])

FIRST_DRAWS, MAX_DRAWS = 32, 4_096
"""Draws of signs at once; symmetric games are recognised within the first few."""


def blocks_of(games: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [D], the block that each decision's game belongs to. games: int64 [D], numbers of the games."""
    return np.unique(games, return_inverse=True)[1].reshape(-1) % MAX_BLOCKS


def by_cell(
    cells: NDArray[np.int64],
    is_first: NDArray[np.bool_],
    rewards: NDArray[np.float64],
    blocks: NDArray[np.int64],
    *,
    min_decisions: int,
) -> NDArray[np.float64]:
    """Differences float64 [B, C] of rewards about the mean of their cell, in cells with enough decisions of both seats.

    Args:
      cells: int64 [D], which view and actions. is_first: bool [D], of the first of two seats. rewards: float64 [D].
      blocks: int64 [D]. min_decisions: of both seats together, since which seat made them changes in an exchange.
    """
    _, cell, counts = np.unique(cells, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)
    means = np.bincount(cell, rewards) / counts
    kept = np.flatnonzero(counts >= min_decisions)
    kept = kept[np.argsort(-counts[kept], kind="stable")[:MAX_CELLS]]
    column = np.full(counts.size, -1)
    column[kept] = np.arange(kept.size)
    found = np.zeros((int(blocks.max(initial=0)) + 1, kept.size))
    inside = column[cell] >= 0
    signed = np.where(is_first, 1.0, -1.0) * _without_rounding(rewards - means[cell], rewards)
    np.add.at(found, (blocks[inside], column[cell[inside]]), signed[inside])
    return found


def by_feature(
    features: NDArray[np.float64], is_first: NDArray[np.bool_], values: NDArray[np.float64], blocks: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Differences float64 [B, C] of features [D, C] times values [D] about their mean."""
    signed = np.where(is_first, 1.0, -1.0) * _without_rounding(values - values.mean(), values)
    found = np.zeros((int(blocks.max(initial=0)) + 1, features.shape[1]))
    np.add.at(found, blocks, features * signed[:, None])
    return found


def exchange_is_seen(
    groups: Sequence[NDArray[np.float64]], *, error_rate: float, counted: Sequence[bool] | None = None
) -> bool:
    """True if the differences of two seats are larger than exchanges of them would make by chance.

    A statistic far beyond its spread is decided by a bound: a polynomial of degree 2 of random signs exceeds t standard
    deviations with probability exp(-t / e) at most. Source: O'Donnell 2014, Analysis of Boolean Functions, 9.23.

    Args:
      groups: float64 [B, C] each, differences of the blocks.
      error_rate: probability of an untrue answer where the seats may be exchanged.
      counted: groups whose statistic counts for the seats as they are; None for all.
    """
    forms = [_normalised(group) for group in groups]
    observed = [
        _statistics(np.ones((1, len(form[0]))), form)[0]
        for place, form in enumerate(forms)
        if form is not None and (counted is None or counted[place])
    ]
    known = [form for form in forms if form is not None]
    if not observed:
        return False
    largest, draws = float(max(observed)), math.ceil(1.0 / error_rate) - 1
    if largest >= math.e * math.log(len(known) / error_rate):
        return True
    rng, num_blocks = np.random.default_rng(0), max(len(form[0]) for form in known)
    size = min(FIRST_DRAWS, draws)
    while draws > 0:
        signs = rng.choice(SIGNS, (size, num_blocks))
        drawn = np.max([_statistics(signs[:, : len(form[0])], form) for form in known], axis=0)
        if (drawn >= largest - 1e-6 * abs(largest)).any():
            return False
        draws -= size
        size = min(16 * size, MAX_DRAWS, draws)
    return True


def _without_rounding(differences: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences of values, with 0 for those that are rounding: of constant payoffs these would be all there is."""
    return np.where(np.abs(differences) > 1e-9 * np.abs(values).max(initial=0.0), differences, 0.0)


def _normalised(group: NDArray[np.float64]) -> tuple[NDArray[np.float64], float] | None:
    """Columns of variance 1 under random signs, and the deviation of the sum of their squares; None where it is 0."""
    variances = (group**2).sum(axis=0)
    kept = variances > 1e-12 * variances.max(initial=1e-30)
    columns = group[:, kept] / np.sqrt(variances[kept])
    products = columns @ columns.T
    spread = 2.0 * ((products**2).sum() - (np.diag(products) ** 2).sum())
    return (columns, math.sqrt(spread)) if spread > 1e-6 else None


def _statistics(signs: NDArray[np.float64], form: tuple[NDArray[np.float64], float]) -> NDArray[np.float64]:
    """[draws] sums of squares for signs [draws, B], less their mean and divided by their deviation."""
    columns, deviation = form
    found: NDArray[np.float64] = (((signs @ columns) ** 2).sum(axis=1) - columns.shape[1]) / deviation
    return found
