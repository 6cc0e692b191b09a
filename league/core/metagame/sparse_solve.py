"""Solving with the information matrix of thousands of ratings, of which only the pairs that have met are stored.

Shape letters: N policies, M pairs, K right-hand sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

BLOCK = 16
"""Right-hand sides solved at once: more of them are no faster, and take memory."""


class PairMatrix:
    """B' W B of weighted pairs with one policy's row and column taken out: symmetric, positive definite if connected.

    Args:
      size: N.
      first, second: int64 [M], indices of the two policies; every policy but the anchor is in some pair.
      anchor: index that is taken out; its entry in any solution is 0.
    """

    def __init__(self, size: int, first: Numbers, second: Numbers, *, anchor: int) -> None:
        self._size = size
        self._first = first
        self._second = second
        self._anchor = anchor
        rows, self._columns = np.concatenate([first, second]), np.concatenate([second, first])
        self._order = np.argsort(rows, kind="stable")
        self._columns = self._columns[self._order]
        self._rows, self._starts = np.unique(rows[self._order], return_index=True)

    def solve(self, weights: Array, rhs: Array, *, tolerance: float, most: int = 500) -> Array:
        """float64 [N, K], solutions for right-hand sides [N, K], by conjugate gradients with the diagonal as a guide.

        Args:
          weights: float64 [M].
          tolerance: residual relative to the right-hand side.
          most: iterations; what is reached by then is returned.
        Source: Hestenes and Stiefel 1952.
        """
        both = np.concatenate([weights, weights])[self._order][:, None]
        diagonal = self.diagonal(weights)
        solution = np.zeros_like(rhs)
        residual = np.array(rhs)
        residual[self._anchor] = 0.0
        bound = tolerance**2 * np.maximum((residual**2).sum(axis=0), 1e-300)
        guided = residual / diagonal[:, None]
        direction, power = guided, (residual * guided).sum(axis=0)
        for _ in range(most):
            if bool(np.all((residual**2).sum(axis=0) <= bound)):
                break
            image = diagonal[:, None] * direction
            image[self._rows] -= np.add.reduceat(both * direction[self._columns], self._starts, axis=0)
            image[self._anchor] = 0.0
            length = power / np.maximum((direction * image).sum(axis=0), 1e-300)
            solution += length * direction
            residual -= length * image
            guided = residual / diagonal[:, None]
            before, power = power, (residual * guided).sum(axis=0)
            direction = guided + power / np.maximum(before, 1e-300) * direction
        return solution

    def diagonal(self, weights: Array) -> Array:
        """float64 [N]; 1 for the anchor."""
        found: Array = np.zeros(self._size)
        found += np.bincount(self._first, weights, self._size)
        found += np.bincount(self._second, weights, self._size)
        found[self._anchor] = 1.0
        return found

    def inverse_diagonal(self, weights: Array, *, probes: int = 48, tolerance: float = 1e-3) -> Array:
        """float64 [N], estimate of the diagonal of the inverse, each with a relative error of about sqrt(2 / probes).

        With signs s drawn for the pairs, the solution z for B' W^(1/2) s has E[z_i^2] equal to that diagonal.

        Source: Spielman and Srivastava 2011, graph sparsification by effective resistances, section 4.
        """
        roots = np.sqrt(weights)
        total = np.zeros(self._size)
        for start in range(0, probes, BLOCK):
            rhs = np.stack(
                [self._spread(roots * signs(len(roots), start + k)) for k in range(min(BLOCK, probes - start))], axis=1
            )
            total += (self.solve(weights, rhs, tolerance=tolerance) ** 2).sum(axis=1)
        # The inverse's diagonal is never less than the diagonal's inverse.
        estimate: Array = np.maximum(total / probes, 1.0 / self.diagonal(weights))
        estimate[self._anchor] = 0.0
        return estimate

    def _spread(self, flows: Array) -> Array:
        spread: Array = np.zeros(self._size)
        spread += np.bincount(self._first, flows, self._size)
        spread -= np.bincount(self._second, flows, self._size)
        return spread


def signs(size: int, stream: int) -> Array:
    """float64 [size] of -1 and 1 that look random and are the same on every machine.

    Source: Steele et al. 2014, SplitMix64.
    """
    mixed = np.arange(size, dtype=np.uint64) + np.uint64(1 + (stream << 32))
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.where(mixed & np.uint64(1), 1.0, -1.0)
