"""Win rates between policies as a matrix, with the orders in which a reader may want its rows.

Shape letter: N policies shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import RatingRow
from league.core.state.payoff import GAMES, SCORE
from league.core.state.population import FIXED_OPPONENT, PLAYER
from league.core.state.state import LeagueState
from league.errors import LeagueError, nearest
from league.see.reports.figures.extent import Extent, page_of
from league.see.reports.figures.intervals import win_rate_interval

Array = NDArray[np.float64]

POLICIES, MAX_POLICIES = 40, 100
"""Rows shown by default and at most: a cell of more cannot be seen."""
WHO = ("frozen", "players", "all")
KINDS = ("player", "snapshot", "fixed opponent")


class MatrixPolicy(msgspec.Struct, frozen=True):
    """A row and column.

    Fields:
      policy: id. kind: "player", "snapshot" or "fixed opponent". player, role: whose it is, empty for a fixed opponent.
      elo: its rating; None where it has none.
    """

    policy: str
    kind: str
    player: str
    role: str
    elo: float | None


class MatrixCell(msgspec.Struct, frozen=True, array_like=True):
    """Games of a row's policy against a column's.

    Fields:
      row, column: indices of the policies.
      win_rate: mean score of the row, draws one half, each game as it weighs now.
      low, high: bounds of its 90 % interval, as matchmaking and gates know it.
      games: all there ever were. effective_games: as they weigh now.
    """

    row: int
    column: int
    win_rate: float
    low: float
    high: float
    games: int
    effective_games: float


class PayoffMatrix(msgspec.Struct, frozen=True):
    """Win rates of some policies against one another.

    Fields:
      policies: [N], strongest first, those without a rating last.
      cells: of the pairs that have met; a pair has one in each direction.
      orders: name of an order -> [N] indices of the policies in it: "rating", "name" and "cluster", which puts
        policies together that fare alike.
      who: "frozen", "players" or "all". seat: of the row's policy; None for all seats together. seats: of the game.
      extent: which of the policies are shown. counts: what the games count by.
    """

    policies: tuple[MatrixPolicy, ...]
    cells: tuple[MatrixCell, ...]
    orders: Mapping[str, tuple[int, ...]]
    who: str
    seat: int | None
    seats: int
    extent: Extent
    counts: str


def payoff_matrix(
    state: LeagueState,
    ratings: Sequence[RatingRow],
    *,
    who: str = "frozen",
    seat: int | None = None,
    offset: int = 0,
    limit: int = POLICIES,
) -> PayoffMatrix:
    """The matrix of some policies.

    Raises:
      LeagueError: there is no such group of policies, or no such seat.
    """
    _check(state, who, seat)
    elo = {row.policy: row.elo for row in ratings if row.games}
    everyone = _ordered(state, who, elo)
    numbers, extent = page_of(everyone, what="policies", offset=offset, limit=limit, most=MAX_POLICIES)
    policies = tuple(_policy(state, number, elo) for number in numbers)
    cells = _cells(state, np.array(numbers, dtype=np.int64), seat)
    names = [policy.policy for policy in policies]
    orders = {
        "rating": tuple(range(len(names))),
        "name": tuple(sorted(range(len(names)), key=lambda index: natural(names[index]))),
        "cluster": cluster_order(_profiles(len(names), cells)),
    }
    return PayoffMatrix(policies, cells, orders, who, seat, state.num_seats, extent, state.counts)


def cluster_order(profiles: Array) -> tuple[int, ...]:
    """An order of rows in which those that are alike stand together.

    Args:
      profiles: float64 [N, F], numbers by which rows are compared.
    Source: Sokal and Michener 1958, average linkage; the leaves of its tree from left to right.
    """
    groups: list[tuple[int, ...]] = [(index,) for index in range(len(profiles))]
    distances = np.sqrt(((profiles[:, None, :] - profiles[None, :, :]) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    sizes = np.ones(len(profiles))
    while len(groups) > 1:
        first, second = sorted(divmod(int(distances.argmin()), len(groups)))
        merged = (sizes[first] * distances[first] + sizes[second] * distances[second]) / (sizes[first] + sizes[second])
        distances[first], distances[:, first] = merged, merged
        distances[first, first] = np.inf
        sizes[first] += sizes[second]
        groups[first] += groups.pop(second)
        distances = np.delete(np.delete(distances, second, axis=0), second, axis=1)
        sizes = np.delete(sizes, second)
    return groups[0] if groups else ()


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts the numbers in names by their value: main-0-s9 before main-0-s10."""
    parts = re.split(r"([0-9]+)", name)  # numbers stand at the odd places
    return tuple((int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts))


def _check(state: LeagueState, who: str, seat: int | None) -> None:
    if who not in WHO:
        raise LeagueError(f"there are no policies {who!r}, only {', '.join(WHO)}{nearest(who, WHO)}")
    if seat is not None and not 0 <= seat < state.num_seats:
        raise LeagueError(f"the game has seats 0 to {state.num_seats - 1}, not {seat}")


def _ordered(state: LeagueState, who: str, elo: Mapping[str, float]) -> list[int]:
    """Numbers of the policies that may be shown: rated ones strongest first, then the others, newest first."""
    kinds, names = state.population.kind.values, state.population.names
    wanted = np.full(len(names), True) if who == "all" else (kinds == PLAYER) == (who == "players")
    numbers = np.flatnonzero(wanted).tolist()
    return sorted(numbers, key=lambda number: (-elo.get(names[number], -np.inf), -number))


def _policy(state: LeagueState, number: int, elo: Mapping[str, float]) -> MatrixPolicy:
    population = state.population
    name, kind = population.names[number], int(population.kind.values[number])
    if kind == FIXED_OPPONENT:
        return MatrixPolicy(name, KINDS[kind], "", "", elo.get(name))
    owner = population.names[int(population.owner.values[number])]
    role = state.players[owner].role if owner in state.players else ""
    return MatrixPolicy(name, KINDS[kind], owner, role, elo.get(name))


def _cells(state: LeagueState, chosen: NDArray[np.int64], seat: int | None) -> tuple[MatrixCell, ...]:
    """The cells of the pairs that have met and whose games still weigh something."""
    payoff = state.payoff
    place = np.full(len(state.population), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    found = np.flatnonzero((place[payoff.home] >= 0) & (place[payoff.away] >= 0))
    rows, columns = place[payoff.home[found]], place[payoff.away[found]]
    clock = state.population.staleness_clock.values
    if seat is None:
        present, totals = payoff.present(found, clock), payoff.totals_of(found).sum(axis=(1, 2))
    else:
        present, totals = payoff.present_on(seat, found, clock), payoff.totals_of(found)[:, seat].sum(axis=1)
    kept = (present[:, GAMES] > 0.0) & (rows != columns)
    score, games = present[kept, SCORE], present[kept, GAMES]
    low, high = win_rate_interval(score, games, payoff.prior_games)
    listed = (rows[kept], columns[kept], score / games, low, high, totals[kept], games)
    return tuple(MatrixCell(*cell) for cell in zip(*(part.tolist() for part in listed), strict=True))


def _profiles(size: int, cells: Sequence[MatrixCell]) -> Array:
    """float64 [N, N], gains of each row against each column, a pair that has not met at 0."""
    gains = np.zeros((size, size))
    for cell in cells:
        gains[cell.row, cell.column] = cell.win_rate - 0.5
    return gains
