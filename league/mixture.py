"""The mixture that a league exports: the snapshots that none of the others surely beats, together.

A Nash mixture of estimated win rates is a mixture of lucky snapshots: of a hundred that are as good as equal, the exact
solution gives all its weight to the one that chance lifted above the others. On Leduc poker that was the fourth of 124,
with a NashConv of 0.82 beside 0.14 of the last. What lies within doubt is therefore no reason to leave a snapshot out,
and of those that remain newer ones weigh more.
"""

from __future__ import annotations

import numpy as np

from league.core.meta_game import doubtful_win_rates, heaviest, own_snapshots
from league.core.ratings import league_ratings
from league.core.state import LeagueState
from league.linear_program import MOST_POLICIES, nash

DOUBT = 0.25
"""Standard deviations that a snapshot's win rate against each member has to be above a half for it to count. Errors of
several members cancel: those of 16 together leave a quarter."""


def league_mixture(state: LeagueState) -> tuple[tuple[str, float], ...]:
    """(snapshot, weight), heaviest first; empty without one. Of more than `MOST_POLICIES`, those rated highest.

    In a game of many sides a snapshot beats another where it fares better on its seats against it there.
    """
    names = _candidates(state)
    if not names:
        return ()
    if len(set(state.teams)) == 1 or len(names) == 1:
        return ((names[-1], 1.0),)
    win_rates, doubts = doubtful_win_rates(state, names)
    mixture = nash(win_rates, doubts=DOUBT * doubts, favour=np.arange(1.0, len(names) + 1.0))
    kept = heaviest(mixture)
    weights = mixture[kept] / mixture[kept].sum()
    return tuple(zip([names[i] for i in kept.tolist()], weights.tolist(), strict=True))


def _candidates(state: LeagueState) -> list[str]:
    """Snapshots that may be members, oldest first."""
    names = own_snapshots(state)
    if len(names) <= MOST_POLICIES:
        return names
    own = set(names)
    rated = [row.policy for row in league_ratings(state) if row.policy in own]
    chosen = set(rated[:MOST_POLICIES] or names[-MOST_POLICIES:])
    return [name for name in names if name in chosen]
