"""Centred ranks: what an evolution strategy sees of returns, whatever their scale.

Shape letter: E episodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def centred_ranks(returns: NDArray[np.floating]) -> NDArray[np.float32]:
    """Ranks of returns, spread evenly over [-1/2, 1/2]; equal returns share the mean of their ranks.

    Without the mean, the order of arrival would decide between games that were all won.

    Args:
      returns: [E] or any shape of E numbers, all finite; E is at least 2.
    Returns:
      float32 of the same shape; it sums to 0.
    Source: Salimans et al. 2017, Evolution Strategies, section 2.1, and `compute_centered_ranks` of its code.
    """
    flat = np.asarray(returns).reshape(-1)
    _, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts + 1) / 2)[inverse.reshape(-1)]
    centred: NDArray[np.float32] = (ranks / (flat.size - 1) - 0.5).astype(np.float32).reshape(np.shape(returns))
    return centred
