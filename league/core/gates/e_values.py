"""E-values against an opponent's being unbeaten, carried over all games of a player with it.

A stake of 1 is bet on win rates above the bound of the gate. The first part is bet with the first game, the rest as
the player trains on: it may learn late to beat an opponent. Bets that have gained fade
with the games that they rest on; bets that have lost do not. So the expected value of all bets and of the rest never
rises while the opponent is unbeaten. It ever exceeds 1 / a with a chance of at most a, whenever and however often one
looks. Faded counts of games do not promise that: they forget losses, and try again in every half-life.

Shape letters: N opponents, K alternatives.

Source: Ville 1939; Shiryaev 1963 (a prior on the time of change); Ramdas et al. 2023, Game-theoretic statistics and
safe anytime-valid inference, section 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.gates.posterior_gate import PosteriorGate
from league.core.state.growable_array import GrowableArray
from league.core.state.league_config import GateConfig
from league.core.state.state import LeagueState
from league.envs.component_choice import given_options

Array = NDArray[np.float64]

TEST = "posterior"
"""The gate that looks at e-values."""
ALTERNATIVES = ((0.2, 0.40), (0.4, 0.35), (0.75, 0.25))
"""(place, weight) each: win rates so far from the bound to 1 that an e-value bets on. With the default settings and
true win rates from 0.72 to 1, the gate needs less than twice the games of one that knows the win rate."""
FIRST_STAKE = 0.75
"""Part of the stake that is bet with the first game. Of the rest 1 / (1 + u) waits after u half-lives."""

BOUND, CLOCK, WAITING, BETS = 0, 1, 2, slice(3, None)
"""Columns of a row: win rate at which an opponent is unbeaten, 0 for none; trained steps of both at the last game; part
of the stake that waits; [K] natural logarithms of what the bets are worth."""

_PLACES, _WEIGHTS = np.array(ALTERNATIVES).T
_LOG_WEIGHTS = np.log(_WEIGHTS)


def new_bets(bound: float, now: Array | float, size: int = 1) -> Array:
    """float64 [size, 3 + K], rows before the first game. now: trained steps of both, [size] or one for all."""
    rows = np.empty((size, 3 + len(_WEIGHTS)))
    rows[:, BOUND], rows[:, CLOCK], rows[:, WAITING] = bound, now, 1.0 - FIRST_STAKE
    rows[:, BETS] = np.log(FIRST_STAKE) + _LOG_WEIGHTS
    return rows


def carried(rows: Array, now: Array | float, half_life: float) -> Array:
    """float64 [N, 3 + K], rows as of `now`, [N] or one for all: bets that have gained fade, and more is bet."""
    rows = rows.copy()
    age = np.maximum(now - rows[:, CLOCK], 0.0) / half_life
    waiting = 1.0 / (1.0 / rows[:, WAITING] + age / (1.0 - FIRST_STAKE))
    gains = rows[:, BETS] - _LOG_WEIGHTS
    gains = np.where(gains > 0.0, gains * np.exp2(-age)[:, None], gains)
    placed = np.log(np.maximum(rows[:, WAITING] - waiting, np.finfo(np.float64).tiny))
    rows[:, BETS] = np.logaddexp(gains, placed[:, None]) + _LOG_WEIGHTS
    rows[:, CLOCK], rows[:, WAITING] = np.maximum(now, rows[:, CLOCK]), waiting
    return rows


def observe(rows: Array, won: Array | float, lost: Array | float) -> None:
    """Settle the bets of rows, in place, by games: [N] or one for all. A draw counts as half a win and half a loss."""
    bound = rows[:, BOUND, None]
    rates = bound + (1.0 - bound) * _PLACES
    of_win, of_loss = np.log(rates / bound), np.log((1.0 - rates) / (1.0 - bound))
    rows[:, BETS] += np.atleast_1d(won)[:, None] * of_win + np.atleast_1d(lost)[:, None] * of_loss


def log_e_values(rows: Array) -> Array:
    """float64 [N], natural logarithms of the e-values; 0 for an opponent without games."""
    known = rows[:, BOUND] > 0.0
    rows = np.where(known[:, None], rows, new_bets(0.5, 0.0))
    values = np.logaddexp(np.logaddexp.reduce(rows[:, BETS], axis=1), np.log(rows[:, WAITING]))
    return np.where(known, values, 0.0)


def bound_of(config: GateConfig) -> float | None:
    """The win rate at which an opponent of this gate is unbeaten; None for a gate that looks at no e-values."""
    return PosteriorGate(**given_options(config.test)).bound if config.test_name == TEST else None


def record_evidence(state: LeagueState, player: str, opponent: int, *, score: float, games: int, now: float) -> None:
    """Settle a player's bets on one opponent, by its number, with the score of games."""
    bound = bound_of(state.config_of(player).gate) if state.carries_evidence else None
    if bound is None:
        return
    held = state.gate_evidence.setdefault(player, GrowableArray("float64", (3 + len(_WEIGHTS),)))
    while len(held) <= opponent:
        held.append(0.0)
    row = held.values[opponent : opponent + 1]
    if row[0, BOUND] != bound:  # the first game, or another bound in the settings
        row[:] = new_bets(bound, now)
    row[:] = carried(row, now, state.payoff.half_life_steps)
    observe(row, score, games - score)


def evidence_against(state: LeagueState, player: str, opponents: NDArray[np.int64]) -> Array | None:
    """float64 [N], log e-values against each opponent's being unbeaten; None where none are carried."""
    bound = bound_of(state.config_of(player).gate) if state.carries_evidence else None
    if bound is None:
        return None
    held = state.gate_evidence.get(player, GrowableArray("float64", (3 + len(_WEIGHTS),))).values
    rows = np.zeros((len(opponents), held.shape[1]))
    known = opponents < len(held)
    rows[known] = held[opponents[known]]
    rows[rows[:, BOUND] != bound] = 0.0
    clock = state.population.staleness_clock.values
    met = rows[:, BOUND] > 0.0
    now = clock[state.players[player].policy] + clock[opponents]
    rows[met] = carried(rows[met], now[met], state.payoff.half_life_steps)
    return log_e_values(rows)


def forget_evidence(state: LeagueState, player: str) -> None:
    """Void all bets of a player and on it: its weights were thrown away."""
    state.gate_evidence.pop(player, None)
    number = state.players[player].policy
    for held in state.gate_evidence.values():
        held.values[number : number + 1] = 0.0
