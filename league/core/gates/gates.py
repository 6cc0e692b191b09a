"""When a player's weights are frozen into a snapshot, and what the decision rests on.

Shape letter: C opponents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.state.events import Evidence
from league.core.state.league_config import GateConfig
from league.core.state.payoff import Posterior
from league.core.state.registry import GATES, load

GATE, TIMEOUT = "gate", "timeout"
"""Reasons of a snapshot after which an exploiter may start again."""

MAX_EVIDENCE = 16
"""Hardest opponents that a decision lists in the journal."""


@dataclass(frozen=True)
class Trial:
    """What a gate judges.

    Fields:
      steps: trained since the last snapshot or reset.
      gate_opponents: int64 [C], numbers of those to be beaten. names: number -> id.
      posterior: win rate against each of the C opponents.
    """

    steps: int
    gate_opponents: NDArray[np.int64]
    names: Mapping[int, str]
    posterior: Posterior
    config: GateConfig


@dataclass(frozen=True)
class Verdict:
    """A snapshot is due.

    Fields:
      reason: GATE or TIMEOUT. evidence: hardest opponents first.
      gate_opponents: how many were judged. doubt: the greatest about one of them, None where the gate computes none.
    """

    reason: str
    evidence: tuple[Evidence, ...]
    gate_opponents: int = 0
    expected_unbeaten: float | None = None


class Gate(Protocol):
    """Judges a trial; None: not yet. It is asked only once `min_steps` are over."""

    def __call__(self, trial: Trial, /) -> Verdict | None: ...


def gate_of(config: GateConfig) -> Gate:
    """The gate that the settings name.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Gate, load(GATES, config.kind, what="gate"))


def threshold(trial: Trial) -> Verdict | None:
    """Fires when every opponent is beaten at more than `win_rate` in at least `min_games` games, or at the timeout.

    The minimum of many noisy estimates: with 200 opponents only the timeout acts. For few opponents, and for
    comparison with published leagues.

    Source: Vinyals et al. 2019, pseudocode, `ready_to_checkpoint`.
    """
    config, known = trial.config, trial.posterior
    measured = bool(np.all(known.games >= config.min_games))
    if len(trial.gate_opponents) and measured and bool(np.all(known.mean > config.win_rate)):
        return Verdict(GATE, evidence_of(trial), gate_opponents=len(trial.gate_opponents))
    if trial.steps >= config.timeout_steps:
        return Verdict(TIMEOUT, evidence_of(trial), gate_opponents=len(trial.gate_opponents))
    return None


def evidence_of(trial: Trial) -> tuple[Evidence, ...]:
    """The hardest opponents of a trial, hardest first."""
    known = trial.posterior
    hardest = np.argsort(known.mean, kind="stable")[:MAX_EVIDENCE].tolist()
    mean, lower = known.mean, known.lower
    return tuple(
        Evidence(
            trial.names[int(trial.gate_opponents[i])],
            games=float(known.games[i]),
            mean=float(mean[i]),
            lower=float(lower[i]),
        )
        for i in hardest
    )
