"""Errors of new rows from the values that the actors recorded, before any learner has seen the rows.

Shape letters: R rows, T unroll length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.unroll import Unrolls

MAX_SHARE = 0.9
"""Weight of a row's largest error, that of its mean being the rest (Kapturowski et al. 2019, R2D2, section 2.3)."""


def first_errors(unrolls: Unrolls, *, gamma: float) -> NDArray[np.float32]:
    """float32 [R], errors of one step under the recorded values; NaN for a row without a step whose end is recorded.

    The value of the bootstrap observation is not recorded: the row was complete before the policy saw it. So only the
    first T - 1 decisions count, and of those none before the marker of a truncation.

    Source: Horgan et al. 2018, Ape-X, section 3: actors compute the first priorities from their own values.
    """
    values = unrolls.values
    assert values is not None, "checked when the configuration was loaded"
    discounts = unrolls.discounts[:, :-1]
    errors = np.abs(unrolls.rewards[:, :-1] + gamma * discounts * values[:, 1:] - values[:, :-1])
    counts = unrolls.valid[:, :-1] & (unrolls.valid[:, 1:] | (discounts == 0.0))
    number = counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean = np.where(counts, errors, 0.0).sum(axis=1) / number
    largest = np.where(counts, errors, -np.inf).max(axis=1, initial=-np.inf)
    mixed = MAX_SHARE * largest + (1.0 - MAX_SHARE) * mean
    return np.where(number > 0, mixed, np.nan).astype(np.float32)
