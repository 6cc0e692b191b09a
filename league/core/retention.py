"""Retention: selects snapshots whose weights a league no longer needs. Records, games and ratings stay."""

from __future__ import annotations

import numpy as np

from league.core.marks import kept_for_users
from league.core.metagame.ratings import league_ratings, strongest
from league.core.state.commands import Refused, RetireSnapshots
from league.core.state.events import Event, SnapshotRetired
from league.core.state.state import LeagueState

RETIRED = "retired to keep within the limit of snapshots"
"""Beginning of the reason why such a snapshot is absent."""

SLACK = 0.05
"""Fraction of the limit by which a league falls below it each time: looking for what is not needed takes a while."""

NEWEST_KEPT = 5
"""Newest snapshots of each player whose weights always stay."""


def most_snapshots(count: int, num_bytes: float, *, snapshot_bytes: int) -> int:
    """Snapshots that a league may hold so that their weights, with those retired last, keep within both limits.

    Args:
      count, num_bytes: the limits. snapshot_bytes: of one frozen policy.
    """
    return max(int(min(count, num_bytes / snapshot_bytes) * (1.0 - SLACK)), 1)


def retire_snapshots(state: LeagueState, command: RetireSnapshots, rng: np.random.Generator) -> list[Event]:
    """Set aside the snapshots that are needed least, until a little fewer than `command.keep` are left.

    Of each player the newest stand close together and the older ones ever farther apart: the next to go is the one
    whose neighbours would then be nearest, measured against its age. Nothing goes that something open refers to.

    Raises:
      Refused: less than one is to be kept, or there are no more than that.
    """
    present = state.population.snapshots()
    if command.keep < 1 or len(present) <= command.keep:
        raise Refused(f"{len(present)} snapshots are there, of which {command.keep} are to be kept")
    needed = needed_snapshots(state)
    courses = [state.population.snapshots_of(player.policy).tolist() for player in state.players.values()]
    surplus = len(present) - max(int(command.keep * (1.0 - SLACK)), 1)
    names = state.population.names
    retired: list[Event] = []
    while len(retired) < surplus:
        costs = [
            (_distance(course, place), course[place], course, place)
            for course in courses
            for place in range(len(course))
            if names[course[place]] not in needed
        ]
        if not costs:
            break
        _, number, course, place = min(costs, key=lambda cost: cost[:2])
        del course[place]
        retired.append(SnapshotRetired(names[number], f"{RETIRED} ({command.keep:,})"))
    return retired


def needed_snapshots(state: LeagueState) -> set[str]:
    """Snapshots whose weights the league or its users may ask for next.

    These are sources of resets and restarts; those that open leases, directives and the mixture name; the newest and
    the first of every player; the strongest of every player and of the league; those that somebody tagged or pinned.
    """
    needed: set[str | None] = {name for player in state.players.values() for name in (player.parent, player.initial)}
    needed |= kept_for_users(state)
    needed |= {order.source for order in state.directives.values()}
    needed |= {
        name for lease in state.leases.values() for assignment in lease.assignments for name in assignment.policies
    }
    needed |= set(state.mixture.weights)
    population = state.population
    for player in state.players.values():
        own = population.snapshots_of(player.policy)
        needed |= {population.names[int(number)] for number in (*own[:1], *own[-NEWEST_KEPT:])}
    rows = [row for row in league_ratings(state) if row.policy in state.snapshots]
    owners = {state.snapshots[row.policy].player for row in rows}
    for chosen in (rows, *([row for row in rows if state.snapshots[row.policy].player == owner] for owner in owners)):
        best = strongest(tuple(chosen))
        needed.add(None if best is None else best.policy)
    return {name for name in needed if name is not None}


def apply_retired(state: LeagueState, event: SnapshotRetired) -> None:
    """The snapshot is no longer an opponent."""
    state.population.set_aside(state.population.index[event.snapshot], reason=event.reason)


def _distance(course: list[int], place: int) -> float:
    """Numbers between the neighbours of a snapshot over its age, in numbers since the newest of its player."""
    before = course[place - 1] if place else -1
    after = course[place + 1] if place + 1 < len(course) else course[-1] + 1
    return (after - before) / (course[-1] - course[place] + 1)
