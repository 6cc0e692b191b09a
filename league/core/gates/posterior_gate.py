"""A gate whose error is bounded however often it looks and however many opponents there are.

Every opponent is judged by its own games alone: an e-value says how much they speak against its being unbeaten. Under
that hypothesis an e-value ever exceeds 1 / a with a chance of at most a, whenever one looks and whenever one stops.
The gate asks this of every opponent, so no single unbeaten one gets past it more often than a; more of them only hold
it better.

Shape letters: C opponents, K alternatives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import GATE, MAX_EVIDENCE, TIMEOUT, Trial, Verdict, evidence_of
from league.core.state.events import Evidence
from league.core.state.payoff import Posterior

Array = NDArray[np.float64]

ALTERNATIVES = ((0.2, 0.40), (0.4, 0.35), (0.75, 0.25))
"""(place, weight) each: win rates so far from the bound to 1 that an e-value bets on. They keep the cost of not knowing
the win rate below twice the games that would be needed with it, from 0.72 to 1 with the default settings."""


def posterior(trial: Trial) -> Verdict | None:
    """Fires when the doubt about every opponent is at most `1 - confidence`, or at the timeout.

    A opponent is not beaten when its win rate lies `margin` or more below `win_rate`; over all opponents the mean must
    lie above `win_rate`. A opponent with fewer than `min_games` effective games holds the gate, like an unbeaten one:
    it may be the newest exploiter.
    """
    size = len(trial.gate_opponents)
    if not size:
        return Verdict(TIMEOUT, evidence_of(trial)) if trial.steps >= trial.config.timeout_steps else None
    fires = bool(trial.posterior.mean.mean() > trial.config.win_rate)
    is_over = trial.steps >= trial.config.timeout_steps
    if not fires and not is_over:
        return None
    doubts = chances_unbeaten(trial)
    expected_unbeaten = float(doubts.max())
    if fires and expected_unbeaten <= 1.0 - trial.config.confidence:
        return Verdict(GATE, _evidence(trial, doubts), expected_unbeaten=expected_unbeaten, gate_opponents=size)
    return (
        Verdict(TIMEOUT, _evidence(trial, doubts), expected_unbeaten=expected_unbeaten, gate_opponents=size)
        if is_over
        else None
    )


def chances_unbeaten(trial: Trial) -> Array:
    """float64 [C], doubt about each opponent: how probable games as good as these are at most, if it is not beaten.

    1 / E, at most 1, where E is the mean likelihood ratio of some win rates above `win_rate - margin` to that one. A
    game that counts only in part, for its age or as a draw, changes E by no more than its part.

    Source: Ville 1939; Ramdas et al. 2023, Game-theoretic statistics and safe anytime-valid inference, section 2.
    """
    config = trial.config
    bound = config.win_rate - config.margin
    places, weights = np.array(ALTERNATIVES).T
    rates = bound + (1.0 - bound) * places
    won, lost = _results(trial.posterior)
    logs = won[:, None] * np.log(rates / bound) + lost[:, None] * np.log((1.0 - rates) / (1.0 - bound))  # [C, K]
    best = np.maximum(logs.max(axis=1), 0.0)
    values = np.exp(logs - best[:, None]) @ weights
    doubts = np.exp(-best) / np.maximum(values, np.finfo(np.float64).tiny)
    return np.where(trial.posterior.games >= config.min_games, np.minimum(doubts, 1.0), 1.0)


def _results(known: Posterior) -> tuple[Array, Array]:
    """float64 [C] each, games won and lost at their present weight, without those of the prior."""
    prior = 0.5 * (known.alpha + known.beta - known.games)
    return np.maximum(known.alpha - prior, 0.0), np.maximum(known.beta - prior, 0.0)


def _evidence(trial: Trial, doubts: Array) -> tuple[Evidence, ...]:
    """The opponents in greatest doubt, the most doubtful first."""
    known, mean, lower = trial.posterior, trial.posterior.mean, trial.posterior.lower
    doubtful = np.lexsort((mean, -doubts))[:MAX_EVIDENCE].tolist()
    return tuple(
        Evidence(
            trial.names[int(trial.gate_opponents[i])],
            games=float(known.games[i]),
            mean=float(mean[i]),
            lower=float(lower[i]),
            unbeaten=float(doubts[i]),
        )
        for i in doubtful
    )
