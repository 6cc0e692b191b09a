"""Sequential probability ratio test on pairs of games: which of two strengths explains the results so far.

A pair of games shares its opening with the seats exchanged, and its two games are not independent. So the test counts
pairs by their score, 0, 1/4, 1/2, 3/4 or 1 (the pentanomial model), and assumes nothing else about them.

Shape letters: K = 5 scores of a pair. "..." are any leading axes: tests side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAIR_SCORES = np.linspace(0.0, 1.0, 5)
"""[K] mean score of the two games of a pair."""
UNSEEN = 1e-3
"""Pairs that a score without a pair counts as: with a chance of zero the ratio would be certain at once."""
MAX_STEPS, CLOSE = 100, 1e-11
"""Of the search for a tilt: steps, and the move at which it ends."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SprtConfig:
    """The two hypotheses and the allowed errors.

    Fields:
      elo0, elo1: strength of the first over the second in logistic Elo under H0 and H1; elo0 is the smaller.
      alpha: probability of accepting H1 where H0 holds. beta: of accepting H0 where H1 holds.
    Raises:
      ValueError: the strengths are not in order, or an error is not between 0 and 1/2.
    """

    elo0: float = 0.0
    elo1: float = 10.0
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ValueError(f"elo0 is {self.elo0:g} and elo1 is {self.elo1:g}: elo0 must be the smaller")
        for name, chance in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0.0 < chance < 0.5:
                raise ValueError(f"{name} is {chance:g}: it must lie between 0 and 0.5")

    @property
    def lower(self) -> float:
        """Log-likelihood ratio at which H0 is accepted."""
        return math.log(self.beta / (1.0 - self.alpha))

    @property
    def upper(self) -> float:
        """Log-likelihood ratio at which H1 is accepted."""
        return math.log((1.0 - self.beta) / self.alpha)

    def decision(self, ratio: float) -> str:
        """ "H0", "H1", or "" while neither is accepted.

        Source: Wald 1945, Sequential tests of statistical hypotheses.
        """
        return "H1" if ratio >= self.upper else "H0" if ratio <= self.lower else ""


@dataclass(frozen=True)
class SprtRow:
    """A sequential test and what it says of the games so far.

    Fields:
      config: the hypotheses, on the first contender's strength over the second.
      pairs: [K] pairs of games in which the first scored 0, 1/4, 1/2, 3/4 and 1 on average.
      ratio: log-likelihood ratio of H1 over H0. lower, upper: where H0 or H1 is accepted.
      decision: "H0", "H1" or "" where neither is accepted.
    """

    config: SprtConfig
    pairs: tuple[int, ...]
    ratio: float
    lower: float
    upper: float
    decision: str

    @property
    def text(self) -> str:
        """The test for people."""
        verdict = {
            "H1": f"H1 accepted: stronger by {self.config.elo1:g} Elo rather than {self.config.elo0:g}",
            "H0": f"H0 accepted: stronger by {self.config.elo0:g} Elo rather than {self.config.elo1:g}",
            "": "undecided: more games are needed",
        }[self.decision]
        pairs = ", ".join(str(count) for count in self.pairs)
        bounds = f"[{self.lower:.2f}, {self.upper:.2f}]"
        return f"{verdict} (log-likelihood ratio {self.ratio:.2f} in {bounds}, pairs {pairs})"


def sequential_test(counts: NDArray[np.int64], config: SprtConfig) -> SprtRow:
    """The test after these pairs. counts: int64 [K], as of `pair_counts`."""
    ratio = float(log_likelihood_ratio(counts, config))
    pairs = tuple(int(count) for count in counts)
    return SprtRow(config, pairs, ratio, config.lower, config.upper, config.decision(ratio))


def pair_counts(pair_scores: Array) -> NDArray[np.int64]:
    """int64 [K], pairs of each score. pair_scores: float64 [G], mean score of the first in the two games of a pair."""
    places = np.rint(pair_scores * (len(PAIR_SCORES) - 1)).astype(np.int64)
    return np.bincount(places, minlength=len(PAIR_SCORES))


def log_likelihood_ratio(counts: NDArray[np.int64], config: SprtConfig) -> Array:
    """Generalised log-likelihood ratio of H1 over H0.

    Under each hypothesis the most likely distribution over the scores is taken among those with its mean.

    Args:
      counts: int64 [..., K], pairs of each score.
    Returns:
      float64 [...], 0 where no pair has been played.
    Source: Van den Bergh, The generalised SPRT for multinomial models, section 2; fishtest, LLRcalc.py.
    """
    seen = np.where(counts == 0, UNSEEN, counts.astype(np.float64))
    total = seen.sum(axis=-1, keepdims=True)
    observed = seen / total
    under_h1 = _most_likely(observed, expected_score(config.elo1))
    under_h0 = _most_likely(observed, expected_score(config.elo0))
    ratio: Array = (seen * np.log(under_h1 / under_h0)).sum(axis=-1)
    return np.where(counts.sum(axis=-1) > 0, ratio, 0.0)


def expected_score(elo: float) -> float:
    """Score in [0, 1] of a player who is `elo` Elo stronger, by the logistic curve."""
    return 1.0 / (1.0 + math.pow(10.0, -elo / 400.0))


def elo_of(score: float) -> float:
    """Elo of a score, the inverse of `expected_score`; infinite at 0 and 1."""
    if score <= 0.0 or score >= 1.0:
        return math.copysign(math.inf, score - 0.5)
    return -400.0 * math.log10(1.0 / score - 1.0)


def _most_likely(observed: Array, mean: float) -> Array:
    """float64 [..., K], the distribution of a given mean under which `observed` [..., K] is most likely.

    It is observed / (1 + t (score - mean)) with the t at which its mean is `mean`. That t is the zero of a falling
    function, found by Newton's method within a bracket that every step narrows.
    """
    away = PAIR_SCORES - mean
    low = np.full((*observed.shape[:-1], 1), -1.0 / away.max())
    high = np.full_like(low, -1.0 / away.min())
    tilt = np.zeros_like(low)
    for _ in range(MAX_STEPS):
        weight = 1.0 / (1.0 + tilt * away)
        excess = (observed * away * weight).sum(axis=-1, keepdims=True)
        slope = (observed * (away * weight) ** 2).sum(axis=-1, keepdims=True)
        low, high = np.where(excess > 0, tilt, low), np.where(excess > 0, high, tilt)
        step = tilt + excess / slope
        step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        moved, tilt = float(np.abs(step - tilt).max(initial=0.0)), step
        if moved < CLOSE:
            break
    tilted: Array = observed / (1.0 + tilt * away)
    return tilted
