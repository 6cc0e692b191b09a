"""The payoff: games of every pair of policies by the home's seat, fading as the learning side trains on.

Row = home, column = away. A game has a score in [0, 1] for the home (`league.core.state.scoring`). A win rate, in the
whole core, is the mean of these. The Beta posterior takes a score of 0.7 for seven tenths of a win. A score in [0, 1]
varies at most as much as a coin of its mean. So the posterior is never surer than it may be. It is too sure only where
the scale of returns is set below the standard deviation of a game's margin.

Shape letters: P policies, C cells (pairs that have met), S seats.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.core.state.growable_array import GrowableArray

WIN, DRAW, LOSS = 0, 1, 2
SCORE, GAMES = 0, 1
LOWER_BOUND_Z = 1.6449
"""Standard deviations below the mean at which a normal posterior has 5 % of its mass."""


@dataclass(frozen=True)
class Posterior:
    """The posterior of one policy's win rate against C others.

    Fields:
      alpha, beta: float64 [C], parameters of the Beta posterior; a score s adds s and 1 - s, so a draw half to each.
      games: float64 [C], games seen, each at its present weight.
    """

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    games: NDArray[np.float64]

    @functools.cached_property
    def mean(self) -> NDArray[np.float64]:
        """float64 [C] in (0, 1)."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def lower(self) -> NDArray[np.float64]:
        """float64 [C], lower 5 % bound (normal approximation, not below 0)."""
        mean = self.mean
        deviation = np.sqrt(mean * (1.0 - mean) / (self.alpha + self.beta + 1.0))
        return np.maximum(mean - LOWER_BOUND_Z * deviation, 0.0)

    def sample(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """float64 [C], one draw of each win rate."""
        win_rates = rng.random(len(self.alpha))
        # Most pairs of a large league have never met; Beta(1, 1) is uniform, and forty times as quick to draw so.
        shaped = ((self.alpha != 1.0) | (self.beta != 1.0)).nonzero()[0]
        win_rates[shaped] = rng.beta(self.alpha[shaped], self.beta[shaped])
        return win_rates

    def take(self, chosen: NDArray[np.int64]) -> Posterior:
        """The same for the entries at `chosen`."""
        return Posterior(self.alpha[chosen], self.beta[chosen], self.games[chosen])


@dataclass
class Payoff:
    """The table of all pairs that have met; a pair of different policies has a cell in each direction.

    Fields:
      half_life_steps, prior_games: see `PayoffConfig`.
      home, away: int32 [C] numbers of the policies of a cell.
      clock: float64 [C], how far both had moved (trained steps) when the cell was last aged.
      weights: float64 [C, S, 2], sum of the home's scores and number of games by its seat, as they weighed at `clock`.
      totals: int64 [C, S, 3], wins, draws and losses of the home by its seat, unaged and never cleared.
      scores: float64 [C, S], sum of the home's scores, unaged and never cleared.
    """

    half_life_steps: float
    prior_games: float
    home: GrowableArray
    away: GrowableArray
    clock: GrowableArray
    weights: GrowableArray
    totals: GrowableArray
    scores: GrowableArray
    _cells: dict[int, int] = field(init=False, repr=False)
    _rows: dict[int, GrowableArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        homes = self.home.values
        keys = (homes.astype(np.int64) << 32) | self.away.values
        self._cells = dict(zip(keys.tolist(), range(len(keys)), strict=True))
        order = np.argsort(homes, kind="stable")
        starts = np.flatnonzero(np.diff(homes[order], prepend=-1))
        rows = np.split(order, starts[1:]) if len(order) else []
        self._rows = {int(homes[cells[0]]): GrowableArray.of(cells) for cells in rows}

    def __len__(self) -> int:
        return len(self.home)

    def add(
        self,
        home: int,
        away: int,
        *,
        seat: int,
        results: tuple[int, int, int],
        score: float,
        now: float,
        counts: bool = True,
    ) -> None:
        """Records games of one ordered pair; O(1).

        Args:
          home, away: numbers of the policies.
          seat: the home's seat.
          results: the home's wins, draws and losses.
          score: sum of the home's scores in these games.
          now: how far both have moved, trained steps.
          counts: False books what never ages alone: games of weights that a reset has since thrown away.
        """
        cell = self._cell(home, away, now)
        totals = self.totals.values[cell, seat]
        for result in (WIN, DRAW, LOSS):  # one number at a time: an array made of three costs more than their sums
            totals[result] += results[result]
        self.scores.values[cell, seat] += score
        if not counts:
            return
        weights, clock = self.weights.values[cell], self.clock.values
        if clock[cell] != now:
            weights *= math.exp2((clock[cell] - now) / self.half_life_steps)
            clock[cell] = now
        weights[seat, SCORE] += score
        weights[seat, GAMES] += sum(results)

    def forget(self, policy: int) -> None:
        """Take the weight off every game of a policy, on both sides: its weights were thrown away. O(C)."""
        stale = (self.home.values == policy) | (self.away.values == policy)
        self.weights.values[stale] = 0.0

    def posterior(self, home: int, staleness_clock: NDArray[np.float64]) -> Posterior:
        """Win rate of `home` against each of the P policies, all seats together.

        Args:
          staleness_clock: float64 [P], how far each policy has moved by now.
        """
        known = np.zeros((2, len(staleness_clock)))
        cells = self.cells_of(home)
        known[:, self.away.values[cells]] = self.present(cells, staleness_clock).T
        half, lost = 0.5 * self.prior_games, np.maximum(known[GAMES] - known[SCORE], 0.0)
        return Posterior(alpha=known[SCORE] + half, beta=lost + half, games=known[GAMES])

    def present(self, cells: NDArray[np.int64], staleness_clock: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [C, 2], scores and games of the homes of cells, all seats together, as they weigh now."""
        fading = self._fading(self._age(cells, staleness_clock))
        present: NDArray[np.float64] = self.weights.values[cells].sum(axis=1) * fading[:, None]
        return present

    def present_on(
        self, seat: int, cells: NDArray[np.int64], staleness_clock: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """float64 [C, 2], the same of the games in which the homes held one seat."""
        fading = self._fading(self._age(cells, staleness_clock))
        present: NDArray[np.float64] = self.weights.values[cells, seat] * fading[:, None]
        return present

    def seat_games(self, home: int, away: int, staleness_clock: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [S, 2], scores and games of `home` against `away` by the home's seat, as they weigh now."""
        cell = self._cells.get(_key(home, away))
        if cell is None:
            return np.zeros(self.weights.values.shape[1:])
        present: NDArray[np.float64] = self.weights.values[cell] * self._fading(
            staleness_clock[home] + staleness_clock[away] - self.clock.values[cell]
        )
        return present

    def seat_totals(self, home: int, away: int) -> NDArray[np.int64]:
        """int64 [S, 3], all games of `home` against `away` ever, by the home's seat."""
        cell = self._cells.get(_key(home, away))
        if cell is None:
            return np.zeros(self.totals.values.shape[1:], dtype=np.int64)
        return np.array(self.totals.values[cell])

    def cells_of(self, home: int) -> NDArray[np.int64]:
        """Cells of one row, in the order in which the pairs first met."""
        row = self._rows.get(home)
        return np.array(row.values if row is not None else (), dtype=np.int64)

    def _age(self, cells: NDArray[np.int64], staleness_clock: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [C], trained steps that the policies of cells have moved since these were last aged."""
        moved = staleness_clock[self.home.values[cells]] + staleness_clock[self.away.values[cells]]
        age: NDArray[np.float64] = moved - self.clock.values[cells]
        return age

    def _fading(self, age: NDArray[np.float64]) -> NDArray[np.float64]:
        faded: NDArray[np.float64] = np.exp2(-age / self.half_life_steps)
        return faded

    def _cell(self, home: int, away: int, now: float) -> int:
        key = _key(home, away)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = self.home.append(home)
            self.away.append(away)
            self.clock.append(now)
            self.weights.append(0.0)
            self.totals.append(0)
            self.scores.append(0.0)
            row = self._rows.get(home)
            if row is None:
                row = self._rows[home] = GrowableArray("int64")
            row.append(cell)
        return cell


def empty_payoff(*, num_seats: int, half_life_steps: float, prior_games: float) -> Payoff:
    """A payoff without a game."""
    return Payoff(
        half_life_steps=half_life_steps,
        prior_games=prior_games,
        home=GrowableArray("int32"),
        away=GrowableArray("int32"),
        clock=GrowableArray("float64"),
        weights=GrowableArray("float64", (num_seats, 2)),
        totals=GrowableArray("int64", (num_seats, 3)),
        scores=GrowableArray("float64", (num_seats,)),
    )


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


def _key(home: int, away: int) -> int:
    return (home << 32) | away
