"""The opponents of which a gate has seen too few games to decide."""

from __future__ import annotations

import numpy as np

from league.core.directives import view_of
from league.core.gates.gates import beaten_at
from league.core.matchmaking.roles import matchmaker_of
from league.core.state.state import LeagueState


def starved_opponents(state: LeagueState, player: str) -> tuple[list[tuple[str, float]], int]:
    """Opponents of a player's gate with fewer effective games than the gate asks for, and the number of all
    opponents."""
    if not state.is_competitive:
        return [], 0
    view = view_of(state, player)
    gate_opponents = matchmaker_of(view.config).gate_opponents(view)
    games = view.posterior.games[gate_opponents]
    names = state.population.names
    hungry = np.flatnonzero(games < beaten_at(view.config.gate).min_games)
    return [(names[int(gate_opponents[i])], float(games[i])) for i in hungry.tolist()], len(gate_opponents)
