"""A gate whose error is bounded however often it looks and however many opponents there are.

Every opponent is judged by its own games alone: an e-value says how much they speak against its being unbeaten. Under
that hypothesis an e-value ever exceeds 1 / a with a chance of at most a, whenever one looks and whenever one stops.
The gate asks this of every opponent, so no single unbeaten one gets past it more often than a; more of them only hold
it better.

Shape letters: C opponents, K alternatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import GATE, MAX_EVIDENCE, TIMEOUT, Trial, Verdict, evidence_of
from league.core.state.events import Evidence
from league.core.state.payoff import Posterior
from league.core.state.population_config import require

Array = NDArray[np.float64]

ALTERNATIVES = ((0.2, 0.40), (0.4, 0.35), (0.75, 0.25))
"""(place, weight) each: win rates so far from the bound to 1 that an e-value bets on. With the default settings and
true win rates from 0.72 to 1, the gate needs less than twice the games of one that knows the win rate."""


@dataclass(frozen=True)
class PosteriorGate:
    """Fires when the p-value of every opponent's being unbeaten is at most `1 - confidence`, or at the timeout.

    An opponent is not beaten when its win rate lies `margin` or more below `win_rate`; over all opponents the mean must
    lie above `win_rate`. An opponent with fewer than `min_games` effective games holds the gate, like an unbeaten one:
    it may be the newest exploiter.

    Fields:
      win_rate: the mean over all opponents must exceed this.
      min_games: effective games against an opponent below which its win rate proves nothing, so that it holds the gate.
      margin: an opponent holds the gate where it is beaten at so much less than `win_rate`.
      confidence: chance with which the gate never fires while an opponent is not beaten and the win rates stay as they
        are. It holds for any number of looks and of opponents.
    """

    win_rate: float = 0.7
    min_games: float = 10.0
    margin: float = 0.05
    confidence: float = 0.8

    def __post_init__(self) -> None:
        require(0.0 < self.win_rate < 1.0, f"win_rate must lie between 0 and 1, not {self.win_rate}")
        require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")
        require(
            0.0 <= self.margin < self.win_rate, f"margin must lie in [0, win_rate {self.win_rate}), not {self.margin}"
        )
        require(0.0 < self.confidence < 1.0, f"confidence must lie between 0 and 1, not {self.confidence}")

    def __call__(self, trial: Trial) -> Verdict | None:
        """A snapshot is due, or not yet."""
        size, is_over = len(trial.gate_opponents), trial.steps >= trial.config.timeout_steps
        if not size:
            return Verdict(TIMEOUT, evidence_of(trial)) if is_over else None
        fires = bool(trial.posterior.mean.mean() > self.win_rate)
        if not fires and not is_over:
            return None
        p_values = self.p_values(trial)
        if fires and p_values.max() <= 1.0 - self.confidence:
            return Verdict(GATE, _evidence(trial, p_values), gate_opponents=size)
        if not is_over:
            return None
        return Verdict(TIMEOUT, _evidence(trial, p_values), gate_opponents=size)

    def p_values(self, trial: Trial) -> Array:
        """float64 [C], how probable games as good as these are at most, if that opponent is not beaten.

        1 / E, at most 1, where E is the mean likelihood ratio of some win rates above `win_rate - margin` to that one.
        A game that counts only in part, for its age or as a draw, changes E by no more than its part.

        Source: Ville 1939; Ramdas et al. 2023, Game-theoretic statistics and safe anytime-valid inference, section 2.
        """
        bound = self.win_rate - self.margin
        places, weights = np.array(ALTERNATIVES).T
        rates = bound + (1.0 - bound) * places
        won, lost = _results(trial.posterior)
        logs = won[:, None] * np.log(rates / bound) + lost[:, None] * np.log((1.0 - rates) / (1.0 - bound))  # [C, K]
        best = np.maximum(logs.max(axis=1), 0.0)
        values = np.exp(logs - best[:, None]) @ weights
        p_values = np.exp(-best) / np.maximum(values, np.finfo(np.float64).tiny)
        return np.where(trial.posterior.games >= self.min_games, np.minimum(p_values, 1.0), 1.0)


def _results(known: Posterior) -> tuple[Array, Array]:
    """float64 [C] each, games won and lost at their present weight, without those of the prior."""
    prior = 0.5 * (known.alpha + known.beta - known.games)
    return np.maximum(known.alpha - prior, 0.0), np.maximum(known.beta - prior, 0.0)


def _evidence(trial: Trial, p_values: Array) -> tuple[Evidence, ...]:
    """The opponents of the largest p-values, the largest first."""
    known, mean, lower = trial.posterior, trial.posterior.mean, trial.posterior.lower
    hardest = np.lexsort((mean, -p_values))[:MAX_EVIDENCE].tolist()
    return tuple(
        Evidence(
            trial.names[int(trial.gate_opponents[i])],
            games=float(known.games[i]),
            mean=float(mean[i]),
            lower=float(lower[i]),
            unbeaten=float(p_values[i]),
        )
        for i in hardest
    )
