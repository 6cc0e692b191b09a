"""Mixtures that no policy beats, and those that are beaten least; the one home of the package for linear programs.

Shape letters: N policies; R opponents, M members of a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.solvers import gains_of, regret_matching
from league.policies.most_even import most_even

Array = NDArray[np.float64]

MAX_POLICIES = 512
"""Rows up to which the programs are solved, within three seconds; that grows with their third power."""


def nash(win_rates: Array) -> Array:
    """The mixture that no row beats; of several such the most even one, whatever the order of the rows.

    Policies that nothing tells apart weigh the same, and copies of a policy share what it would weigh alone.

    Args:
      win_rates: float64 [N, N], as for every solver.
    Returns:
      float64 [N], sums to 1. By regret matching for more than `MAX_POLICIES`, or where the program finds no solution
      for want of digits.
    Raises:
      ValueError: not square, or empty.
    Source: Balduzzi et al. 2018, Re-evaluating evaluation (one Nash of many, fair to copies: there the one of the
      greatest entropy, here of the least sum of squares).
    """
    gains = gains_of(win_rates)
    if len(gains) > MAX_POLICIES:
        return regret_matching(win_rates)
    # A game that is the same for both sides is worth nothing to either, so that a bound of 0 can be kept.
    found = most_even(gains, bound=0.0, favour=np.ones(len(gains)))
    return regret_matching(win_rates) if found is None else found


def least_beaten(gains: Array, *, favour: Array) -> Array:
    """The mixture against which the best opponent wins least; of several such the most even one.

    First the least t with gains p <= t, then the most even p that keeps max(t, 0): that no opponent wins anything is
    enough, and what a mixture might win itself is no reason to leave a member out.

    Args:
      gains: float64 [R, M], how far over a half each opponent reliably wins against each member.
      favour: float64 [M], positive; members that nothing tells apart share their weight by it.
    Returns:
      float64 [M], sums to 1.
    Source: Dantzig 1951 (matrix games as linear programs); Huangfu and Hall 2018, HiGHS (the method).
    """
    from scipy.optimize import linprog  # 36 MiB and 0.3 s, which a daemon that asks for no mixture does without

    opponents, members = gains.shape
    found = linprog(
        np.append(np.zeros(members), 1.0),
        A_ub=np.hstack([gains, -np.ones((opponents, 1))]),
        b_ub=np.zeros(opponents),
        A_eq=np.append(np.ones(members), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * members + [(None, None)],
        method="highs",
    )
    alone = np.eye(members)[int(gains.max(axis=0).argmin())]
    mixture: Array = np.maximum(found.x[:members], 0.0) if found.success else alone
    mixture /= mixture.sum()
    even = most_even(gains, bound=max(float((gains @ mixture).max()), 0.0), favour=favour)
    return mixture if even is None else even


def lowest_maximum(groups: Sequence[Array]) -> tuple[Array, float]:
    """The mixture p with the lowest sum over the groups of each group's largest row value, and that sum.

    Args:
      groups: float64 [R_g, M] each, what every row earns against each member.
    Returns:
      float64 [M], sums to 1, and the lowest sum; minus infinity where the program fails, with even weights.
    """
    from scipy.optimize import linprog  # 36 MiB and 0.3 s, which a daemon that asks for no mixture does without

    members, num = groups[0].shape[1], len(groups)
    rows = [np.hstack([rows, np.tile(-np.eye(num)[group], (len(rows), 1))]) for group, rows in enumerate(groups)]
    found = linprog(
        np.append(np.zeros(members), np.ones(num)),
        A_ub=np.vstack(rows),
        b_ub=np.zeros(sum(map(len, groups))),
        A_eq=np.append(np.ones(members), np.zeros(num))[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * members + [(None, None)] * num,
        method="highs",
    )
    if not found.success:
        return np.full(members, 1.0 / members), -np.inf
    mixture: Array = np.maximum(found.x[:members], 0.0)
    return mixture / mixture.sum(), float(found.fun)
