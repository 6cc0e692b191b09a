"""Faults of a league that its state shows: the doctor words them, the league's own remedies mend them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from league.core.directives import view_of
from league.core.gates.gates import GATE, TIMEOUT, beaten_at
from league.core.matchmaking.roles import EXPLOITER_ROLES
from league.core.plugin_calls import gate_opponents
from league.core.state.state import LeagueState, PlayerState

SILENT_AFTER = 4
"""Snapshots by the timeout, and none by the gate, after which a gate counts as silent."""
IDLE_AFTER = 3
"""Snapshots by the timeout in a row after which an exploiter may count as idle."""
NOTHING_LEARNT = 0.35
"""Best win rate of an exploiter below which it has learnt nothing."""


@dataclass(frozen=True)
class StarvedGate:
    """A gate that knows too little of its opponents.

    Fields:
      player: whose gate it is. opponents: number of all opponents of the gate.
      hungry: opponents with fewer effective games than the gate asks for, with these games.
    """

    player: PlayerState
    opponents: int
    hungry: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class SilentGate:
    """A gate that has never fired. player: whose gate it is; timeouts: its snapshots, all by the timeout."""

    player: PlayerState
    timeouts: int


@dataclass(frozen=True)
class IdleExploiter:
    """An exploiter that beats nobody.

    Fields:
      player: the exploiter; frozen: its snapshots by gate or timeout, of which the last ones were by the timeout.
      best: highest win rate over an opponent of its gate.
    """

    player: PlayerState
    frozen: int
    best: float


def hungry_opponents(state: LeagueState, player: str) -> tuple[list[tuple[str, float]], int]:
    """Opponents of a player's gate with fewer effective games than the gate asks for, and the number of all
    opponents."""
    if not state.is_competitive:
        return [], 0
    view = view_of(state, player)
    opponents = gate_opponents(view)
    games = view.posterior.games[opponents]
    names = state.population.names
    hungry = np.flatnonzero(games < beaten_at(view.config.gate).min_games)
    return [(names[int(opponents[i])], float(games[i])) for i in hungry.tolist()], len(opponents)


def starved_gates(state: LeagueState) -> Iterator[StarvedGate]:
    """Gates that know too little of more than a tenth of their opponents, or of any where the test is a threshold.

    There must have been time to meet them: a reset makes everything unknown.
    """
    for player in _learning(state):
        gate = state.config_of(player.name).gate
        if player.trained_steps - player.gate_steps < max(gate.min_steps, gate.timeout_steps // 2):
            continue
        hungry, opponents = hungry_opponents(state, player.name)
        if len(hungry) > (0 if gate.test_name == "threshold" else opponents // 10):
            yield StarvedGate(player, opponents, tuple(hungry))


def silent_gates(state: LeagueState) -> Iterator[SilentGate]:
    """Gates that never fired, snapshots every so many steps left out: those are what was asked for."""
    for player in _learning(state):
        gate, reasons = state.config_of(player.name).gate, freezes_of(state, player)
        if len(reasons) >= SILENT_AFTER and GATE not in reasons and gate.timeout_steps > gate.min_steps:
            yield SilentGate(player, len(reasons))


def idle_exploiters(
    state: LeagueState, best_win_rate: Callable[[PlayerState], float | None]
) -> Iterator[IdleExploiter]:
    """Exploiters that the timeout has frozen several times in a row and that beat nobody.

    Args:
      best_win_rate: of a player over any opponent of its gate; None where too little is known.
    """
    for player in _learning(state):
        reasons = freezes_of(state, player)
        if player.role not in EXPLOITER_ROLES or len(reasons) < IDLE_AFTER or GATE in reasons[-IDLE_AFTER:]:
            continue
        best = best_win_rate(player)
        if best is not None and best < NOTHING_LEARNT:
            yield IdleExploiter(player, len(reasons), best)


def freezes_of(state: LeagueState, player: PlayerState) -> list[str]:
    """The reasons of a player's snapshots by gate or timeout, oldest first."""
    reasons = [snapshot.reason for snapshot in state.snapshots.values() if snapshot.player == player.name]
    return [reason for reason in reasons if reason in (GATE, TIMEOUT)]


def _learning(state: LeagueState) -> list[PlayerState]:
    return [player for player in state.players.values() if player.is_active]
