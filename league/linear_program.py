"""Mixtures that no policy beats, by a linear program; the one home of the package that solves it.

Shape letter: N policies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from league.core.solvers import gains_of, regret_matching

Array = NDArray[np.float64]

MOST_POLICIES = 512
"""Rows up to which the program is solved, within two seconds; that grows with their third power."""


def nash(win_rates: Array, *, doubts: Array | None = None, favour: Array | None = None) -> Array:
    """The mixture that no row beats; of several such the most even one.

    Find p >= 0 and the least t with (G - D) p <= 0, p <= t f and sum p = 1, where G is how far over a half each row
    wins and D how far off that may be. There is such a p, as a game that is the same for both sides is worth nothing to
    either. The least t matters where win rates are equal, or as good as equal: policies that nothing tells apart share
    their weight, instead of one of them having it all.

    Args:
      win_rates: float64 [N, N], as for every solver.
      doubts: float64 [N, N], not negative; what a row wins within them does not count. None for none.
      favour: float64 [N], positive; policies that nothing tells apart share their weight by it. None for evenly.
    Returns:
      float64 [N], sums to 1. By regret matching for more than `MOST_POLICIES`, or where the program finds no solution
      for want of digits.
    Raises:
      ValueError: not square, or empty.
    Source: Dantzig 1951 (matrix games as linear programs); Huangfu and Hall 2018, HiGHS (the method).
    """
    gains = gains_of(win_rates)
    size = len(gains)
    if size > MOST_POLICIES:
        return regret_matching(win_rates)
    sure = gains if doubts is None else gains - doubts
    share = np.ones(size) if favour is None else favour
    objective = np.append(np.zeros(size), 1.0)
    at_most_nothing = np.block([[sure, np.zeros((size, 1))], [np.eye(size), -share[:, None]]])
    sum_of_weights = np.append(np.ones(size), 0.0)[None]
    found = linprog(
        objective, A_ub=at_most_nothing, b_ub=np.zeros(2 * size), A_eq=sum_of_weights, b_eq=[1.0], method="highs"
    )
    if not found.success:
        return regret_matching(win_rates)
    weights = np.maximum(found.x[:size], 0.0)
    mixture: Array = weights / weights.sum()
    return mixture
