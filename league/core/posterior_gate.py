"""A gate that keeps its meaning however many rivals there are: how many of them are probably not beaten?

The win rates against all rivals together say how win rates are spread; each rival is then judged by its own games and
by that spread. So chance lows among two hundred well measured rivals count as chance, and one that resists does not.

Shape letters: C rivals, G cells of the grid of win rates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.events import Evidence
from league.core.gates import GATE, MOST_EVIDENCE, TIMEOUT, Trial, Verdict, evidence_of
from league.core.payoff import Posterior

Array = NDArray[np.float64]

GRID_CELLS = 64
ITERATIONS = 30
"""Steps of expectation maximisation; few of them, which keeps the spread smooth."""
MOST_FITTED = 512
"""Rivals that the spread is estimated from; more of them change nothing but the time."""
FIRST_LOOK = 16
"""Hardest rivals that are judged before all others, since they settle most trials."""


def posterior(trial: Trial) -> Verdict | None:
    """Fires when the expected number of rivals not beaten is at most `1 - confidence`, or at the timeout.

    A rival counts as not beaten when its win rate lies `margin` or more below `win_rate`; over all rivals the mean must
    lie above `win_rate`. A rival with fewer than `min_games` effective games keeps at least the chance 1 / C of not
    being beaten that everyone starts with, so that a few unmeasured ones among many do not hold the gate.
    """
    doubts = None
    if len(trial.rivals):
        doubts = _settled(trial)
    if doubts is not None and doubts.sum() <= 1.0 - trial.settings.confidence:
        return Verdict(GATE, _evidence(trial, doubts), doubt=float(doubts.sum()), rivals=len(trial.rivals))
    if trial.steps < trial.settings.timeout_steps:
        return None
    if not len(trial.rivals):
        return Verdict(TIMEOUT, evidence_of(trial))
    doubts = chances_unbeaten(trial) if doubts is None else doubts
    return Verdict(TIMEOUT, _evidence(trial, doubts), doubt=float(doubts.sum()), rivals=len(trial.rivals))


def chances_unbeaten(trial: Trial, chosen: NDArray[np.int64] | None = None) -> Array:
    """float64 [C] or of those `chosen`: chance that the rival's win rate is at most `win_rate - margin`.

    The prior of a rival is the spread of the others' win rates and one rival of unknown strength, every win rate alike.

    Source: Efron 2010, Large-Scale Inference, chapters 2 and 5 (empirical Bayes over many tests); the spread is
    estimated by expectation maximisation over a grid (Laird 1978), the rival of unknown strength as its prior.
    """
    bound = trial.settings.win_rate - trial.settings.margin
    cells, widths, num_below = _grid(bound)
    spread = _spread(trial.posterior, cells, widths)
    size = len(trial.rivals)
    known = trial.posterior if chosen is None else trial.posterior.take(chosen)
    likelihood = _likelihood(known, cells)
    own = likelihood * spread
    own /= own.sum(axis=1, keepdims=True)
    # A rival must not be its own prior, or its games would count twice; what is left is at least the unknown rival,
    # half of it in case that the fit has not settled.
    after = likelihood * np.maximum(spread * (size + 1) - own, 0.5 * widths)
    chances: Array = after[:, :num_below].sum(axis=1) / after.sum(axis=1)
    measured = known.games >= trial.settings.min_games
    return np.where(measured, chances, np.maximum(chances, 1.0 / size))


def _settled(trial: Trial) -> Array | None:
    """The chances of all rivals; None where a look at few of them shows that the gate cannot fire."""
    settings, known = trial.settings, trial.posterior
    most = 1.0 - settings.confidence
    mean = known.mean
    unmeasured = np.count_nonzero(known.games < settings.min_games)
    if mean.mean() <= settings.win_rate or unmeasured > most * len(mean):
        return None
    hardest = np.argsort(mean, kind="stable")[:FIRST_LOOK]
    if chances_unbeaten(trial, hardest).sum() > most:
        return None
    return chances_unbeaten(trial)


def _grid(bound: float) -> tuple[Array, Array, int]:
    """Win rates at the middle of G cells, one edge at `bound`, their widths, and the number of cells below it."""
    below = min(max(round(bound * GRID_CELLS), 1), GRID_CELLS - 1)
    above = GRID_CELLS - below
    low = (np.arange(below) + 0.5) * (bound / below)
    high = bound + (np.arange(above) + 0.5) * ((1.0 - bound) / above)
    widths = np.repeat([bound / below, (1.0 - bound) / above], [below, above])
    return np.concatenate([low, high]), widths, below


def _likelihood(known: Posterior, cells: Array) -> Array:
    """float64 [C, G], of each rival's games at each win rate, the highest of a rival 1. The prior games stay out."""
    prior = 0.5 * (known.alpha + known.beta - known.games)
    won, lost = (known.alpha - prior)[:, None], (known.beta - prior)[:, None]
    logs = won * np.log(cells) + lost * np.log1p(-cells)
    likelihood: Array = np.exp(logs - logs.max(axis=1, keepdims=True))
    return likelihood


def _spread(known: Posterior, cells: Array, widths: Array) -> Array:
    """float64 [G], how win rates are spread over the rivals and one of unknown strength; sums to 1."""
    size = len(known.games)
    if size > MOST_FITTED:
        ordered = np.argsort(known.mean, kind="stable")
        known = known.take(ordered[np.linspace(0, size - 1, MOST_FITTED).astype(np.int64)])
    likelihood = _likelihood(known, cells)
    unknown = widths * (len(known.games) / size)
    spread = widths
    for _ in range(ITERATIONS):
        shares = (1.0 / (likelihood @ spread)) @ likelihood * spread + unknown
        spread = shares / shares.sum()
    return spread


def _evidence(trial: Trial, doubts: Array) -> tuple[Evidence, ...]:
    """The rivals that are most probably not beaten, the most doubtful first."""
    known, mean, lower = trial.posterior, trial.posterior.mean, trial.posterior.lower
    doubtful = np.lexsort((mean, -doubts))[:MOST_EVIDENCE].tolist()
    return tuple(
        Evidence(
            trial.names[int(trial.rivals[i])],
            games=float(known.games[i]),
            mean=float(mean[i]),
            lower=float(lower[i]),
            unbeaten=float(doubts[i]),
        )
        for i in doubtful
    )
