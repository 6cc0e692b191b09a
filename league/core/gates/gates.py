"""Gates: decide when a player's weights are frozen into a snapshot, and record the evidence.

Shape letter: C opponents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.state.built_ins import GATES, make
from league.core.state.events import Evidence
from league.core.state.league_config import DEFAULT_GATE, GateConfig
from league.core.state.payoff import Posterior
from league.core.state.population_config import require
from league.envs.component_choice import given_options

GATE, TIMEOUT = "gate", "timeout"
"""Reasons of a snapshot after which an exploiter may start again."""

MAX_EVIDENCE = 16
"""Hardest opponents that a decision lists in the journal."""


@dataclass(frozen=True)
class Trial:
    """The input of a gate: one player and its results.

    Fields:
      steps: trained since the last snapshot or reset.
      gate_opponents: int64 [C], numbers of those to be beaten. names: number -> id.
      posterior: win rate against each of the C opponents.
      log_evidence: float64 [C], natural logarithms of e-values against each one's being unbeaten, see
        `league.core.gates.e_values`. None for a gate that looks at none; the posterior gate then holds.
    """

    steps: int
    gate_opponents: NDArray[np.int64]
    names: Mapping[int, str]
    posterior: Posterior
    config: GateConfig
    log_evidence: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Verdict:
    """A snapshot is due.

    Fields:
      reason: GATE or TIMEOUT. evidence: hardest opponents first.
      gate_opponents: how many were judged.
    """

    reason: str
    evidence: tuple[Evidence, ...]
    gate_opponents: int = 0


class Gate(Protocol):
    """Judges a trial; None: not yet. It is asked only once `min_steps` are over. A dataclass of its options."""

    def __call__(self, trial: Trial, /) -> Verdict | None: ...


def gate_of(config: GateConfig) -> Gate:
    """The gate that the settings name.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    return cast(Gate, make(GATES, config.test, what="gate", default=DEFAULT_GATE))


@dataclass(frozen=True)
class ThresholdGate:
    """Fires when every opponent is beaten at more than `win_rate` in at least `min_games` games, or at the timeout.

    The minimum of many noisy estimates: with 200 opponents only the timeout acts. For few opponents, and for comparison
    with published leagues.

    Fields:
      win_rate: every opponent must be beaten at more than this.
      min_games: effective games against an opponent below which its win rate proves nothing, so that it holds the gate.
    Source: Vinyals et al. 2019, pseudocode, `ready_to_checkpoint`.
    """

    win_rate: float = 0.7
    min_games: float = 10.0

    def __post_init__(self) -> None:
        require(0.0 < self.win_rate < 1.0, f"win_rate must lie between 0 and 1, not {self.win_rate}")
        require(self.min_games >= 0.0, f"min_games must not be negative, not {self.min_games}")

    def __call__(self, trial: Trial) -> Verdict | None:
        """A snapshot is due, or not yet."""
        known, size = trial.posterior, len(trial.gate_opponents)
        measured = bool(np.all(known.games >= self.min_games))
        if size and measured and bool(np.all(known.mean > self.win_rate)):
            return Verdict(GATE, evidence_of(trial), gate_opponents=size)
        if trial.steps >= trial.config.timeout_steps:
            return Verdict(TIMEOUT, evidence_of(trial), gate_opponents=size)
        return None


class BeatenAt(NamedTuple):
    """From what on an opponent counts as beaten: more than this win rate in so many effective games."""

    win_rate: float
    min_games: float


def beaten_at(config: GateConfig) -> BeatenAt:
    """The thresholds by which reports call an opponent beaten: the gate's options of these names, or the defaults.

    The gate itself is not loaded: a report on a run must not run code from outside.
    """
    options = given_options(config.test)
    win_rate, min_games = options.get("win_rate"), options.get("min_games")
    return BeatenAt(
        win_rate if isinstance(win_rate, int | float) else ThresholdGate.win_rate,
        min_games if isinstance(min_games, int | float) else ThresholdGate.min_games,
    )


def evidence_of(trial: Trial, *, unbeaten: NDArray[np.float64] | None = None) -> tuple[Evidence, ...]:
    """The hardest opponents of a trial, hardest first: by `unbeaten`, float64 [C] p-values, then by their win rate."""
    known, mean, lower = trial.posterior, trial.posterior.mean, trial.posterior.lower
    hardest = np.lexsort((mean,) if unbeaten is None else (mean, -unbeaten))[:MAX_EVIDENCE].tolist()
    return tuple(
        Evidence(
            trial.names[int(trial.gate_opponents[i])],
            games=float(known.games[i]),
            mean=float(mean[i]),
            lower=float(lower[i]),
            unbeaten=None if unbeaten is None else float(unbeaten[i]),
        )
        for i in hardest
    )
