"""Retention: selects snapshots whose weights a league no longer needs. Records, games and ratings stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from league.core.marks import kept_for_users
from league.core.matchmaking.generator import candidate_of
from league.core.metagame.ratings import league_ratings, strongest
from league.core.state.commands import Refused, RetireSnapshots
from league.core.state.events import Event, SnapshotRetired
from league.core.state.state import LeagueState

RETIRED = "retired to keep within the limit of snapshots"
"""Beginning of the reason why such a snapshot is absent."""

SLACK = 0.05
"""Fraction of the limit by which a league falls below it each time: looking for what is not needed takes a while."""

WITHIN = "within the limit, older ones farther apart"
"""Reason of those that stay although nothing needs them."""

NEWEST_KEPT = 5
"""Newest snapshots of each player whose weights always stay."""


def most_snapshots(count: int, num_bytes: float, *, snapshot_bytes: int) -> int:
    """Snapshots that a league may hold so that their weights, with those retired last, keep within both limits.

    Args:
      count, num_bytes: the limits. snapshot_bytes: of one frozen policy.
    """
    return max(int(min(count, num_bytes / snapshot_bytes) * (1.0 - SLACK)), 1)


@dataclass(frozen=True)
class RetentionPlan:
    """A choice of snapshots.

    Fields:
      kept: snapshot -> why its weights stay. retired: those whose weights go, the least needed first.
    """

    kept: dict[str, str]
    retired: tuple[str, ...]


def retire_snapshots(state: LeagueState, command: RetireSnapshots, rng: np.random.Generator) -> list[Event]:
    """Set aside the snapshots that are needed least.

    Raises:
      Refused: less than one is to be kept, or there are no more than that.
    """
    present = state.population.snapshots()
    if command.keep < 1 or len(present) <= command.keep:
        raise Refused(f"{len(present)} snapshots are there, of which {command.keep} are to be kept")
    keep = command.keep if command.is_exact else max(int(command.keep * (1.0 - SLACK)), 1)
    reason = f"{RETIRED} ({command.keep:,})" + (f", {command.note}" if command.note else "")
    return [SnapshotRetired(name, reason) for name in plan_retention(state, keep=keep, spared=command.spared).retired]


def plan_retention(state: LeagueState, *, keep: int, spared: Iterable[str] = ()) -> RetentionPlan:
    """The snapshots that go until `keep` are left, or only those that are needed.

    Of each player the newest stand close together and the older ones ever farther apart: the next to go is the one
    whose neighbours would then be nearest, measured against its age. Nothing goes that something open refers to.

    Args:
      spared: policies that stay as well, of games in flight.
    """
    needed = {**dict.fromkeys(spared, "a game in flight is played with it"), **needed_snapshots(state)}
    courses = [state.population.snapshots_of(player.policy).tolist() for player in state.players.values()]
    names = state.population.names
    present = [names[int(number)] for number in state.population.snapshots()]
    retired: dict[str, None] = {}
    while len(present) - len(retired) > keep:
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
        retired[names[number]] = None
    kept = {name: needed.get(name, WITHIN) for name in present if name not in retired}
    return RetentionPlan(kept, tuple(retired))


def needed_snapshots(state: LeagueState) -> dict[str, str]:
    """Snapshots whose weights the league or its users may ask for next -> why.

    These are sources of resets and restarts; those that open leases, directives and the mixture name; the newest and
    the first of every player; the strongest of every player and of the league; those that somebody tagged or pinned.
    """
    needed: dict[str, str] = {}
    for name, reason in _reasons(state):
        if name in state.snapshots:
            needed.setdefault(name, reason)
    return needed


def _reasons(state: LeagueState) -> Iterator[tuple[str | None, str]]:
    """Policies and why each is needed, the reasons that matter most first."""
    yield from ((name, "tagged or pinned") for name in sorted(kept_for_users(state)))
    yield from ((order.source, "an open directive names it") for order in state.directives.values())
    for lease in state.leases.values():
        yield from ((name, "an open lease names it") for row in lease.assignments for name in row.policies)
    yield from ((name, "in the mixture") for name in state.mixture.weights)
    for owner, held in state.generations.items():
        yield held.accepted, f"it makes the games of {owner}"
        yield candidate_of(state, owner), f"{owner} may have its games made by it next"
    population = state.population
    for player in state.players.values():
        yield player.parent, f"{player.name} descends from it"
        yield player.initial, f"{player.name} starts again from it"
        own = [population.names[int(number)] for number in population.snapshots_of(player.policy)]
        yield from ((name, f"the first of {player.name}") for name in own[:1])
        yield from ((name, f"among the {NEWEST_KEPT} newest of {player.name}") for name in own[-NEWEST_KEPT:])
    rows = [row for row in league_ratings(state) if row.policy in state.snapshots]
    owners = {state.snapshots[row.policy].player for row in rows}
    chosen = [(owner, [row for row in rows if state.snapshots[row.policy].player == owner]) for owner in sorted(owners)]
    for owner, some in (("the league", rows), *chosen):
        best = strongest(tuple(some))
        yield None if best is None else best.policy, f"the strongest of {owner}"


def apply_retired(state: LeagueState, event: SnapshotRetired) -> None:
    """The snapshot is no longer an opponent."""
    state.population.set_aside(state.population.index[event.snapshot], reason=event.reason)


def _distance(course: list[int], place: int) -> float:
    """Numbers between the neighbours of a snapshot over its age, in numbers since the newest of its player."""
    before = course[place - 1] if place else -1
    after = course[place + 1] if place + 1 < len(course) else course[-1] + 1
    return (after - before) / (course[-1] - course[place] + 1)
