"""Trials of gates from made-up games."""

from __future__ import annotations

import numpy as np

from league.core.gates.e_values import log_e_values, new_bets, observe
from league.core.gates.posterior_gate import PosteriorGate


def evidence_of_games(won: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """float64 [C], log e-values of games that were all played at once, at the bound of the default settings."""
    rows = new_bets(PosteriorGate().bound, 0.0, len(won))
    observe(rows, won, lost)
    return log_e_values(rows)
