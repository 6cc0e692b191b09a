"""A matchmaker, a gate and a PBT selection as a user would write them: one dataclass each, its fields its options."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.gates.gates import GATE, TIMEOUT, Trial, Verdict, evidence_of
from league.core.matchmaking.roles import MatchmakingView
from league.core.pbt.pbt_selection import Copy, SelectionTrial
from league.envs.plugins import admit


@dataclass(frozen=True)
class NewestOfAll:
    """Meets the newest snapshots of the whole league.

    Fields:
      latest: how many of them. own: share of the games against itself.
    """

    latest: int = 2
    own: float = 0.25

    def __post_init__(self) -> None:
        if self.latest < 1:
            raise ValueError(f"latest must be at least 1, not {self.latest}")

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> NDArray[np.float64]:
        result = np.zeros(len(view.population))
        past = view.population.snapshots()[-self.latest :]
        result[past] = (1.0 - self.own) / max(len(past), 1)
        result[view.home] += 1.0 - result.sum()
        return result

    def gate_opponents(self, view: MatchmakingView) -> NDArray[np.int64]:
        return view.population.snapshots()[-self.latest :]


@dataclass(frozen=True)
class WorstGame:
    """Fires when the worst win rate is above a bar in enough games. worst: the bar. games: effective games."""

    worst: float = 0.6
    games: float = 10.0

    def __call__(self, trial: Trial) -> Verdict | None:
        known = trial.posterior
        if len(trial.gate_opponents) and known.mean.min() > self.worst and known.games.min() >= self.games:
            return Verdict(GATE, evidence_of(trial))
        return Verdict(TIMEOUT, evidence_of(trial)) if trial.steps >= trial.config.timeout_steps else None


@dataclass(frozen=True)
class CopyTheBest:
    """A player copies the best one that is ahead by a lead. lead: in logits of a win."""

    lead: float = 1.0

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
        best = int(trial.score.argmax())
        ahead = float(trial.score[best] - trial.score[trial.player])
        return Copy(best, f"{ahead:.1f} ahead") if ahead > self.lead else None


MATCHMAKER, OWN_GATE, SELECTION = (
    f"tests.league.core.own_components:{name}" for name in ("NewestOfAll", "WorstGame", "CopyTheBest")
)
admit([MATCHMAKER, OWN_GATE, SELECTION])
