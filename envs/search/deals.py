"""Chance by samples. All draws of one game are a deal; deals are equal where every play of them ends equally.

Shape letters: S seats, Z endings, D different deals, N sampled deals.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import Endings

OFTEN = 12
"""Times that each deal was met on average, from which on all are taken to be known."""

LEAST = 16
"""Deals that are drawn at least."""

MAX_UNSEEN = 0.1
"""Share of all games that may have a deal which was never met. It is estimated by the deals that were met once.
Source: Good 1953, The population frequencies of species and the estimation of population parameters."""

ERRORS = 3.0
"""Standard errors by which the counts of the deals may spread more than those of equally likely ones. Less likely to be
met among fewer draws is only what changes less than their own errors do."""


class DealEndings:
    """The endings of one deal."""

    def __init__(self) -> None:
        self._decisions: list[Sequence[tuple[int, int]]] = []
        self._returns: list[NDArray[np.float32]] = []

    def add(self, decisions: Sequence[tuple[int, int]], returns: NDArray[np.float32]) -> None:
        """One ending. decisions: [S], (information state, action) of each seat's last one. returns: [S]."""
        self._decisions.append(decisions)
        self._returns.append(returns.copy())

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """[Z, 2 S] information states and actions, and [Z, S] returns, in an order that equal deals share."""
        returns = np.array(self._returns, np.float64)
        decisions = np.array(self._decisions, np.int64).reshape(len(returns), -1)
        order = np.lexsort(decisions.T)
        return decisions[order], returns[order]


class Deals:
    """The deals drawn so far, equal ones together.

    Fields:
      num_drawn: draws, N.
    """

    def __init__(self) -> None:
        self.num_drawn = 0
        self._counts: dict[bytes, int] = {}
        self._endings: dict[bytes, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        self._known: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def draw_again(self, sign: bytes) -> bool:
        """Count a deal that was drawn before; False if none had this sign."""
        if sign not in self._known:
            return False
        self._counts[self._known[sign]] += 1
        self.num_drawn += 1
        return True

    def draw(self, sign: bytes, deal: DealEndings) -> None:
        """Count a deal, and keep its endings if they are new. sign: by which it is known again."""
        decisions, returns = deal.arrays()
        key = hashlib.blake2b(decisions.tobytes() + returns.tobytes(), digest_size=16).digest()
        self._known[sign] = key
        self._counts[key] = self._counts.get(key, 0) + 1
        self._endings.setdefault(key, (decisions, returns))
        self.num_drawn += 1

    @property
    def are_known(self) -> bool:
        """True if every deal was probably met, and often enough to know how often it comes."""
        return self.num_drawn >= max(LEAST, OFTEN * len(self))

    @property
    def will_do(self) -> bool:
        """True if nearly all games have one of these deals."""
        met_once = sum(count == 1 for count in self._counts.values())
        return self.num_drawn >= LEAST and met_once <= MAX_UNSEEN * self.num_drawn

    @property
    def left(self) -> float:
        """Draws that are probably left until they will do, as a multiple of those made; 0 while too few tell.

        Of D equally likely deals N draws make N^2 / 2D equal pairs, and meet all but exp(-N / D) of the deals.
        """
        if self.num_drawn < LEAST or self.will_do:
            return 0.0
        pairs = sum(count * (count - 1) / 2 for count in self._counts.values())
        deals = self.num_drawn**2 / (2.0 * max(pairs, 1.0))
        return max(-math.log(MAX_UNSEEN) * deals / self.num_drawn - 1.0, 0.0)

    def probabilities(self) -> NDArray[np.float64]:
        """[D], all the same where the draws do not say otherwise, else as often as they came."""
        counts = np.array(list(self._counts.values()), np.float64)
        if _may_be_equal(counts):
            counts = np.ones(len(counts))
        shares: NDArray[np.float64] = counts / counts.sum()
        return shares

    def endings(self) -> Endings:
        """The endings of all deals."""
        probabilities = self.probabilities()
        sizes = [len(returns) for _, returns in self._endings.values()]
        decisions = np.concatenate([decisions for decisions, _ in self._endings.values()])
        return Endings(
            chance=np.repeat(probabilities, sizes),
            returns=np.concatenate([returns for _, returns in self._endings.values()]),
            info_state=decisions[:, 0::2],
            action=decisions[:, 1::2],
        )


def _may_be_equal(counts: NDArray[np.float64]) -> bool:
    """True if counts of what was met, [D], spread as those of equally likely things: Poisson numbers above 0."""
    mean = float(counts.mean())
    rate = mean
    for _ in range(50):  # mean = rate / (1 - exp(-rate))
        rate = mean * -math.expm1(-rate)
    variance = mean * (1.0 + rate - mean)
    return float(counts.var()) <= variance * (1.0 + ERRORS * math.sqrt(2.0 / len(counts)))
