"""The payoff: who beats whom as a matrix, and the games of one pair by seat."""

from __future__ import annotations

import msgspec

from league.errors import LeagueError, nearest
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.payoff_matrix import POLICIES, WHO, PayoffMatrix, payoff_matrix
from league.see.reports.payoff import PayoffRow, payoff_rows

ALL_SEATS = -1


class PayoffQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the payoff.

    Fields:
      who: "frozen", "players" or "all". seat: of the row's policy, -1 for all together.
      offset, limit: which of the policies, strongest first.
      home, away: a pair to show the games of; both empty for none.
    """

    who: str = "frozen"
    seat: int = ALL_SEATS
    offset: int = 0
    limit: int = POLICIES
    home: str = ""
    away: str = ""


class PayoffSection(msgspec.Struct, frozen=True):
    """The payoff.

    Fields:
      matrix: see there. groups: what `who` may be.
      pair: the row of the home against the away, and the other way round; empty where no pair is asked for or where it
        has not met. home, away: the pair. rated: whether ratings are computed yet.
    """

    matrix: PayoffMatrix
    groups: tuple[str, ...]
    home: str
    away: str
    pair: tuple[PayoffRow, ...]
    rated: bool


def read(run: OpenedRun, query: PayoffQuery) -> PayoffSection:
    """The payoff of a run."""
    state, ratings = run.state, run.ratings.value
    seat = None if query.seat == ALL_SEATS else query.seat
    matrix = payoff_matrix(state, ratings or (), who=query.who, seat=seat, offset=query.offset, limit=query.limit)
    pair: tuple[PayoffRow, ...] = ()
    if query.home or query.away:
        for policy in (query.home, query.away):
            if policy not in state.population.index:
                raise LeagueError(f"the league has no policy {policy!r}{nearest(policy, state.population.index)}")
        pair = (
            *payoff_rows(state, (query.home,), away=query.away),
            *payoff_rows(state, (query.away,), away=query.home),
        )
    return PayoffSection(matrix, WHO, query.home, query.away, pair, ratings is not None)
