"""A gate whose error is bounded however often it looks and however many opponents there are.

Every opponent is judged by its own games alone: an e-value says how much they speak against its being unbeaten, see
`league.core.gates.e_values`. Under that hypothesis an e-value ever exceeds 1 / a with a chance of at most a, whenever
one looks and whenever one stops. The gate asks this of every opponent, so no single unbeaten one gets past it more
often than a; more of them only hold it better.

Shape letter: C opponents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import GATE, TIMEOUT, Trial, Verdict, evidence_of
from league.core.state.population_config import require

Array = NDArray[np.float64]


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
      confidence: chance with which the gate never fires while an opponent is not beaten. It holds for any number of
        looks and of opponents.
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
            return Verdict(GATE, evidence_of(trial, unbeaten=p_values), gate_opponents=size)
        if not is_over:
            return None
        return Verdict(TIMEOUT, evidence_of(trial, unbeaten=p_values), gate_opponents=size)

    @property
    def bound(self) -> float:
        """Win rate up to which an opponent is unbeaten."""
        return self.win_rate - self.margin

    def p_values(self, trial: Trial) -> Array:
        """float64 [C], how probable games as good as these are at most, if that opponent is not beaten; at most 1."""
        carried = np.zeros(len(trial.gate_opponents)) if trial.log_evidence is None else trial.log_evidence
        return np.where(trial.posterior.games >= self.min_games, np.exp(-np.maximum(carried, 0.0)), 1.0)
