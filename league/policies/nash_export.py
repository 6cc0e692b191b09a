"""The mixture that a league exports: main agents' snapshots that together no other snapshot reliably beats.

A Nash mixture of estimated win rates is a mixture of lucky snapshots: of a hundred that are as good as equal, the exact
solution gives all its weight to the one that chance lifted above the others. On Leduc poker that was the fourth of 124,
with a NashConv of 0.82 beside 0.14 of the last. A loss within the error is therefore no reason to drop a snapshot,
and of those that remain newer ones weigh more.

Members are snapshots of main agents, opponents are all. An exploiter's snapshot beats what it was trained against, and
nobody was trained against it: of few snapshots it is the only one that none beats, however easily it is beaten. That
main agents' "average" is one of the mixtures chosen from, so that the one chosen is never reliably worse: no opponent
wins more against it than the best opponent wins against the average.
"""

from __future__ import annotations

import numpy as np

from league.core.metagame.meta_game import estimated_win_rates, exported_snapshots, heaviest, own_snapshots
from league.core.metagame.ratings import league_ratings
from league.core.metagame.solvers import gains_of
from league.core.state.state import LeagueState
from league.policies.nash_lp import MAX_POLICIES, least_beaten

MARGIN = 0.25
"""Standard deviations that a snapshot's win rate against each member has to be above a half for it to count. Errors of
several members cancel: those of 16 together leave a quarter."""


def league_mixture(state: LeagueState) -> tuple[tuple[str, float], ...]:
    """(snapshot, weight), heaviest first; empty without one. Of more than `MAX_POLICIES`, those rated highest.

    In a game of many sides a snapshot beats another where it fares better on its seats against it there.
    """
    members = _highest(state, exported_snapshots(state))
    if not members:
        return ()
    if not state.is_competitive or len(members) == 1:
        return ((members[-1], 1.0),)
    known = set(members)
    others = _highest(state, [name for name in own_snapshots(state) if name not in known])
    opponents = [name for name in own_snapshots(state) if name in known or name in set(others)]
    win_rates, errors = estimated_win_rates(state, opponents)
    columns = [opponents.index(name) for name in members]
    sure = (gains_of(win_rates) - MARGIN * errors)[:, columns]
    mixture = least_beaten(sure, favour=np.arange(1.0, len(members) + 1.0))
    kept = heaviest(mixture)
    weights = mixture[kept] / mixture[kept].sum()
    return tuple(zip([members[i] for i in kept.tolist()], weights.tolist(), strict=True))


def _highest(state: LeagueState, names: list[str]) -> list[str]:
    """At most `MAX_POLICIES` of them, those rated highest, in the same order."""
    if len(names) <= MAX_POLICIES:
        return names
    own = set(names)
    rated = [row.policy for row in league_ratings(state) if row.policy in own]
    chosen = set(rated[:MAX_POLICIES] or names[-MAX_POLICIES:])
    return [name for name in names if name in chosen]
