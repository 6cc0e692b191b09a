"""When a player's weights are frozen into a snapshot, and what the decision rests on.

Shape letter: C rivals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.state.events import Evidence
from league.core.state.league_config import GateSettings
from league.core.state.payoff import Posterior
from league.core.state.registry import GATES, load

GATE, TIMEOUT = "gate", "timeout"
"""Reasons of a snapshot after which an exploiter may start again."""

MOST_EVIDENCE = 16
"""Hardest rivals that a decision lists in the journal."""


@dataclass(frozen=True)
class Trial:
    """What a gate judges.

    Fields:
      steps: trained since the last snapshot or reset.
      rivals: int64 [C], numbers of those to be beaten. names: number -> id.
      posterior: win rate against each of the C rivals.
    """

    steps: int
    rivals: NDArray[np.int64]
    names: Mapping[int, str]
    posterior: Posterior
    settings: GateSettings


@dataclass(frozen=True)
class Verdict:
    """A snapshot is due.

    Fields:
      reason: GATE or TIMEOUT. evidence: hardest rivals first.
      rivals: how many were judged. doubt: the greatest about one of them, None where the gate computes none.
    """

    reason: str
    evidence: tuple[Evidence, ...]
    rivals: int = 0
    doubt: float | None = None


class Gate(Protocol):
    """Judges a trial; None: not yet. It is asked only once `min_steps` are over."""

    def __call__(self, trial: Trial, /) -> Verdict | None: ...


def gate_of(settings: GateSettings) -> Gate:
    """The gate that the settings name.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Gate, load(GATES, settings.kind, what="gate"))


def threshold(trial: Trial) -> Verdict | None:
    """Fires when every rival is beaten at more than `win_rate` in at least `min_games` games, or at the timeout.

    The minimum of many noisy estimates: with 200 rivals only the timeout acts. For few rivals, and for comparison with
    published leagues.

    Source: Vinyals et al. 2019, pseudocode, `ready_to_checkpoint`.
    """
    settings, known = trial.settings, trial.posterior
    measured = bool(np.all(known.games >= settings.min_games))
    if len(trial.rivals) and measured and bool(np.all(known.mean > settings.win_rate)):
        return Verdict(GATE, evidence_of(trial), rivals=len(trial.rivals))
    if trial.steps >= settings.timeout_steps:
        return Verdict(TIMEOUT, evidence_of(trial), rivals=len(trial.rivals))
    return None


def evidence_of(trial: Trial) -> tuple[Evidence, ...]:
    """The hardest rivals of a trial, hardest first."""
    known = trial.posterior
    hardest = np.argsort(known.mean, kind="stable")[:MOST_EVIDENCE].tolist()
    mean, lower = known.mean, known.lower
    return tuple(
        Evidence(
            trial.names[int(trial.rivals[i])], games=float(known.games[i]), mean=float(mean[i]), lower=float(lower[i])
        )
        for i in hardest
    )
