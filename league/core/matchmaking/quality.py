"""Opponent quality: a score for each of a player's own snapshots, which falls when the snapshot is beaten.

Shape letter: P policies of the population.
"""

from __future__ import annotations

import numpy as np

from league.core.matchmaking.matchmakers import softmax
from league.core.state.growable_array import GrowableArray
from league.core.state.records import AssignmentOutcome
from league.core.state.scoring import score_sum
from league.core.state.state import LeagueState
from league.envs.component_choice import given_options

MATCHMAKER = "quality"
MIN_CHANCE = 1e-6
"""A snapshot that is met less often is not met in practice; the fall of its quality must stay finite all the same."""


def add_quality(state: LeagueState, player: str, snapshot: int) -> None:
    """A snapshot of a player joins at the highest quality that its snapshots have; 0 for the first."""
    config = state.config_of(player)
    if config.matchmaker_name != MATCHMAKER:
        return
    known = state.qualities.setdefault(player, GrowableArray("float64"))
    past = state.population.snapshots_of(state.players[player].policy)
    earlier = past[past < snapshot]
    best = float(known.values[earlier].max()) if len(earlier) else 0.0
    met = state.met_chances.setdefault(player, GrowableArray("float64"))
    while len(known) < snapshot:
        known.append(0.0)
        met.append(1.0)
    known.append(best)
    met.append(1.0)


def note_chances(state: LeagueState, home: str) -> None:
    """Remember with what chance the games of a lease just granted meet each snapshot of its home.

    A chance that was higher counts for about as long as other leases granted with it are in flight: it halves in as
    many grants as the home has other open leases.
    """
    known = state.qualities.get(home)
    if known is None:
        return
    player = state.players[home]
    past = state.population.snapshots_of(player.policy)
    others = int(state.fair_share.open_leases.values[player.index]) - 1
    faded = 0.5 ** (1.0 / others) if others > 0 else 0.0
    met = state.met_chances[home].values
    met[past] = np.maximum(np.maximum(softmax(known.values[past]), met[past] * faded), MIN_CHANCE)


def record_quality(state: LeagueState, home: str, outcome: AssignmentOutcome) -> None:
    """Let the quality of a beaten snapshot fall by rate / (N p) for each game won against it; it never rises.

    N is the number of snapshots, p the chance with which this one was met: rare ones fall as fast as frequent ones.
    All games of an answer were drawn with the chances of their lease, so p is not computed again between them: with
    less and less in the divisor and as many games as before, a quality that falls would run away to minus infinity.
    Where returns are counted, the scores against it take the place of the games won.

    Source: Berner et al. 2019, appendix N.
    """
    known = state.qualities.get(home)
    if known is None:
        return
    teams, player = state.teams, state.players[home]
    seat = outcome.policies.index(home)
    past = state.population.snapshots_of(player.policy)
    rate = given_options(state.config_of(home).matchmaker)["quality_rate"]
    # One seat of each other team: the seats of a team share its result.
    for other in dict.fromkeys(teams):
        if other == teams[seat]:
            continue
        opponent = teams.index(other)
        number = state.population.index[outcome.policies[opponent]]
        if number in past:
            won: float = outcome.wins[seat][opponent]
            if state.scoring.score == "returns":
                won = score_sum(state.scoring, outcome, teams=teams, seat=seat, opponent=opponent)
            known.values[number] -= rate * won / (len(past) * state.met_chances[home].values[number])
