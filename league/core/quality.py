"""How good a player's own snapshots still are as its opponents: a score each, that falls when the snapshot is beaten.

Shape letter: P policies of the population.
"""

from __future__ import annotations

import numpy as np

from league.core.columns import Column
from league.core.matchmakers import softmax
from league.core.records import SeatingOutcome
from league.core.scoring import score_sum
from league.core.state import LeagueState

MATCHMAKER = "quality"
MOST_FALL = 1.0
"""Most that one answer takes off a quality: an answer holds hundreds of games, whose steps were meant one by one."""


def add_quality(state: LeagueState, player: str, snapshot: int) -> None:
    """A snapshot of a player joins at the highest quality that its snapshots have; 0 for the first."""
    settings = state.settings_of(player)
    if (settings.matchmaker or settings.role) != MATCHMAKER:
        return
    known = state.qualities.setdefault(player, Column("float64"))
    past = state.population.snapshots_of(state.players[player].policy)
    earlier = past[past < snapshot]
    best = float(known.values[earlier].max()) if len(earlier) else 0.0
    while len(known) < snapshot:
        known.append(0.0)
    known.append(best)


def book_quality(state: LeagueState, home: str, outcome: SeatingOutcome) -> None:
    """Let the quality of a beaten snapshot fall by rate / (N p) for each game won against it; it never rises.

    N is the number of snapshots, p the chance with which this one is met: rare ones fall as fast as frequent ones.
    Where returns are counted, the scores against it take the place of the games won.

    Source: Berner et al. 2019, appendix N.
    """
    known = state.qualities.get(home)
    if known is None:
        return
    teams, player = state.teams, state.players[home]
    seat = outcome.policies.index(home)
    past = state.population.snapshots_of(player.policy)
    rate = state.settings_of(home).matchmaking.quality_rate
    # One seat of each other team: the seats of a team share its result.
    for other in dict.fromkeys(teams):
        if other == teams[seat]:
            continue
        rival = teams.index(other)
        place = np.flatnonzero(past == state.population.index[outcome.policies[rival]])
        if len(place):
            met = softmax(known.values[past])[place[0]]
            won: float = outcome.wins[seat][rival]
            if state.scoring.score == "returns":
                won = score_sum(state.scoring, outcome, teams=teams, seat=seat, rival=rival)
            fall = rate * won / (len(past) * met)
            known.values[past[place[0]]] -= min(fall, MOST_FALL)
