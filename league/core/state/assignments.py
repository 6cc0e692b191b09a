"""Builds a lease's table of assignments from the probabilities of its opponents; lists the pairs of seats that meet.

Shape letter: S seats.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable

from league.core.state.records import Assignment


def paired_assignments(
    home: str,
    opponents: Iterable[tuple[str, float]],
    *,
    teams: tuple[int, ...],
    records: bool,
    also_recorded: Collection[str] = (),
) -> tuple[Assignment, ...]:
    """Seat the home policy against each opponent, on every team in turn and equally often.

    The home takes all seats of one team, the opponent all others. Self-play, and a game of one team, has a single
    assignment in which the home sits everywhere.

    Args:
      home: id of the home policy.
      opponents: (id, probability); the probabilities sum to 1. The home's own id means self-play.
      teams: [S] team number of each seat.
      records: whether the home's seats are recorded.
      also_recorded: opponents whose seats are recorded with the home's.
    """
    sides = sorted(set(teams))
    table = []
    for opponent, probability in opponents:
        if opponent == home or len(sides) == 1:
            table.append(Assignment((home,) * len(teams), (records,) * len(teams), probability))
            continue
        for side in sides:
            policies = tuple([home if team == side else opponent for team in teams])
            flags = tuple([records and (team == side or opponent in also_recorded) for team in teams])
            table.append(Assignment(policies, flags, probability / len(sides)))
    return tuple(table)


def counted_pairs(policies: tuple[str, ...], teams: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Ordered pairs of seats whose result is recorded.

    Seats of one team share their result, so a policy that sits in a team several times counts once, at its first
    seat there. Two seats of one game that the same policy holds in two teams are a pair as well: they show what a seat
    is worth.

    Args:
      policies, teams: [S] who sits where, and for whom.
    """
    # Remembered by who equals whom: by names there would be an entry for every two policies of a growing league.
    return _pairs_of(tuple(map(policies.index, policies)), teams)


@functools.lru_cache(maxsize=256)
def _pairs_of(first_seats: tuple[int, ...], teams: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """As `counted_pairs`. first_seats: [S] lowest seat with the same policy."""
    sides = list(zip(teams, first_seats, strict=True))
    firsts = [seat for seat, side in enumerate(sides) if sides.index(side) == seat]
    return tuple((i, j) for i in firsts for j in firsts if teams[i] != teams[j])
