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
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.core.state.growable_array import GrowableArray, NarrowArray
from league.core.state.state_codec import Packed

WIN, DRAW, LOSS = 0, 1, 2
SCORE, GAMES = 0, 1
NUMBERS, COUNTS, SCORES = "Hi", "HIq", "fd"
"""Types of policies' numbers, and of counts and scores of still cells, see `NarrowArray`."""
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


class PairIndex:
    """The cell of each ordered pair: by home the numbers of its aways, ascending, and beside them the cells.

    An entry takes nine bytes; a dictionary by pairs takes a hundred.
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[array[int], array[int]]] = {}

    @classmethod
    def of(cls, home: NDArray[np.int32], away: NDArray[np.int32]) -> PairIndex:
        """The index of the cells 0 to C - 1. home, away: int32 [C], each pair once."""
        index = cls()
        order = np.lexsort((away, home))
        starts = np.flatnonzero(np.diff(home[order], prepend=-1))
        for cells in np.split(order, starts[1:]) if len(order) else ():
            ordered = away[cells].astype(np.intc), cells.astype(np.intc)
            index._rows[int(home[cells[0]])] = (array("i", ordered[0].tobytes()), array("i", ordered[1].tobytes()))
        return index

    def find(self, home: int, away: int) -> int:
        """The cell of a pair, -1 for one that has none."""
        row = self._rows.get(home)
        if row is None:
            return -1
        aways, cells = row
        place = bisect_left(aways, away)
        return cells[place] if place < len(aways) and aways[place] == away else -1

    def add(self, home: int, away: int, cell: int) -> None:
        """Note the cell of a pair that has none."""
        aways, cells = self._rows.setdefault(home, (array("i"), array("i")))
        place = bisect_left(aways, away)
        aways.insert(place, away)
        cells.insert(place, cell)

    def row(self, home: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """int32 [C] twice, copies: the aways that a home has met, ascending, and the cells."""
        aways, cells = self._rows.get(home, ((), ()))
        return np.array(aways, dtype=np.intc), np.array(cells, dtype=np.intc)


@dataclass(frozen=True)
class PayoffColumns:
    """The payoff as it is stored: a row for each cell.

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


class Payoff(Packed):
    """The table of all pairs that have met; a pair of different policies has a cell in each direction.

    A league of months has millions of cells, nearly all of two frozen policies. Nothing moves there, so that the games
    weigh what they weighed: such a cell is `still`, and its totals and scores say it all. Only a cell that aged, or
    whose games were thrown away, has a clock and weights of its own; it is `fading`. Counts of still cells stand in the
    narrowest type that holds them.

    Args:
      num_seats: S.
      half_life_steps, prior_games: see `PayoffConfig`.
    """

    RECORD = PayoffColumns

    def __init__(self, *, num_seats: int, half_life_steps: float, prior_games: float) -> None:
        self.half_life_steps = half_life_steps
        self.prior_games = prior_games
        self._num_seats = num_seats
        self._index = PairIndex()
        self._home = NarrowArray(NUMBERS)
        self._away = NarrowArray(NUMBERS)
        # By cell: its row in the two still tables or, below 0, -1 - its row in the four fading ones.
        self._rows = NarrowArray("i")
        self._still_totals = NarrowArray(COUNTS, (num_seats, 3))
        self._still_scores = NarrowArray(SCORES, (num_seats,))
        self._clock = NarrowArray("d")
        self._weights = NarrowArray("d", (num_seats, 2))
        self._totals = NarrowArray("q", (num_seats, 3))
        self._scores = NarrowArray("d", (num_seats,))

    @classmethod
    def unpacked(cls, record: PayoffColumns) -> Payoff:
        """The payoff of stored columns."""
        clock, weights = record.clock.values, record.weights.values
        totals, scores = record.totals.values, record.scores.values
        payoff = cls(num_seats=scores.shape[1], half_life_steps=record.half_life_steps, prior_games=record.prior_games)
        payoff._home = NarrowArray.of(record.home.values, NUMBERS)
        payoff._away = NarrowArray.of(record.away.values, NUMBERS)
        payoff._index = PairIndex.of(record.home.values, record.away.values)
        same = (weights[:, :, SCORE] == scores) & (weights[:, :, GAMES] == totals.sum(axis=2))
        still = (clock == 0.0) & same.all(axis=1)
        payoff._rows = NarrowArray.of(np.where(still, still.cumsum() - 1, -(~still).cumsum()), "i")
        payoff._still_totals = NarrowArray.of(totals[still], COUNTS)
        payoff._still_scores = NarrowArray.of(scores[still], SCORES)
        payoff._clock = NarrowArray.of(clock[~still], "d")
        payoff._weights = NarrowArray.of(weights[~still], "d")
        payoff._totals = NarrowArray.of(totals[~still], "q")
        payoff._scores = NarrowArray.of(scores[~still], "d")
        return payoff

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def home(self) -> NDArray[np.int32]:
        """int32 [C], see `PayoffColumns`; a copy, as are all columns."""
        return self._home.values.astype(np.int32)

    @property
    def away(self) -> NDArray[np.int32]:
        """int32 [C]."""
        return self._away.values.astype(np.int32)

    @property
    def clock(self) -> NDArray[np.float64]:
        """float64 [C]."""
        return self._clock_of(self._rows.values)

    @property
    def weights(self) -> NDArray[np.float64]:
        """float64 [C, S, 2]."""
        return self._weights_of(self._rows.values)

    @property
    def totals(self) -> NDArray[np.int64]:
        """int64 [C, S, 3]."""
        return self.totals_of(np.arange(len(self)))

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64 [C, S]."""
        return self.scores_of(np.arange(len(self)))

    def totals_of(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64 [C, S, 3] of some cells, see `PayoffColumns`."""
        return self._gather(self._rows.values[cells], self._still_totals, self._totals)

    def scores_of(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64 [C, S] of some cells, see `PayoffColumns`."""
        return self._gather(self._rows.values[cells], self._still_scores, self._scores)

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
        """Records games of one ordered pair; O(log P).

        Args:
          home, away: numbers of the policies.
          seat: the home's seat.
          results: the home's wins, draws and losses.
          score: sum of the home's scores in these games.
          now: how far both have moved, trained steps.
          counts: False books what never ages alone: games of weights that a reset has since thrown away.
        """
        cell = self._index.find(home, away)
        if cell < 0:
            cell = self._new_cell(home, away, now)
        row = self._rows.numbers[cell]
        if row >= 0 and counts and now == 0.0:
            place = self._num_seats * row + seat
            for result in (WIN, DRAW, LOSS):
                self._still_totals.add(3 * place + result, results[result])
            self._still_scores.add(place, score)
            return
        row = -1 - row if row < 0 else self._begin_to_fade(cell)
        place = self._num_seats * row + seat
        for result in (WIN, DRAW, LOSS):
            self._totals.numbers[3 * place + result] += results[result]
        self._scores.numbers[place] += score
        if not counts:
            return
        weights, clock = self._weights.numbers, self._clock.numbers
        if clock[row] != now:
            faded, first = math.exp2((clock[row] - now) / self.half_life_steps), 2 * self._num_seats * row
            for number in range(first, first + 2 * self._num_seats):
                weights[number] *= faded
            clock[row] = now
        weights[2 * place + SCORE] += score
        weights[2 * place + GAMES] += sum(results)

    def forget(self, policy: int) -> None:
        """Take the weight off every game of a policy, on both sides: its weights were thrown away. O(C)."""
        for cell in np.flatnonzero((self._home.values == policy) | (self._away.values == policy)).tolist():
            row = self._rows.numbers[cell]
            own = -1 - row if row < 0 else self._begin_to_fade(cell)
            self._weights.values[own] = 0.0

    def posterior(self, home: int, staleness_clock: NDArray[np.float64]) -> Posterior:
        """Win rate of `home` against each of the P policies, all seats together.

        Args:
          staleness_clock: float64 [P], how far each policy has moved by now.
        """
        known = np.zeros((2, len(staleness_clock)))
        away, cells = self._index.row(home)
        known[:, away] = self._present(cells, staleness_clock[home] + staleness_clock[away]).T
        half, lost = 0.5 * self.prior_games, np.maximum(known[GAMES] - known[SCORE], 0.0)
        return Posterior(alpha=known[SCORE] + half, beta=lost + half, games=known[GAMES])

    def present(self, cells: NDArray[np.integer], staleness_clock: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [C, 2], scores and games of the homes of cells, all seats together, as they weigh now."""
        return self._present(cells, self._moved(cells, staleness_clock))

    def present_on(
        self, seat: int, cells: NDArray[np.integer], staleness_clock: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """float64 [C, 2], the same of the games in which the homes held one seat."""
        rows = self._rows.values[cells]
        age = self._moved(cells, staleness_clock) - self._clock_of(rows)
        present: NDArray[np.float64] = self._weights_of(rows)[:, seat] * self._faded(age)[:, None]
        return present

    def seat_games(self, home: int, away: int, staleness_clock: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [S, 2], scores and games of `home` against `away` by the home's seat, as they weigh now."""
        cells = np.array([self._index.find(home, away)])
        if cells[0] < 0:
            return np.zeros((self._num_seats, 2))
        return np.concatenate([self.present_on(seat, cells, staleness_clock) for seat in range(self._num_seats)])

    def seat_totals(self, home: int, away: int) -> NDArray[np.int64]:
        """int64 [S, 3], all games of `home` against `away` ever, by the home's seat."""
        cell = self._index.find(home, away)
        return np.zeros((self._num_seats, 3), np.int64) if cell < 0 else self.totals_of(np.array([cell]))[0]

    def sums(self, home: int, away: int) -> tuple[float, int]:
        """Sum of the scores of `home` against `away` and number of games ever, all seats together."""
        cells = np.array([self._index.find(home, away)])
        if cells[0] < 0:
            return 0.0, 0
        return float(self.scores_of(cells).sum()), int(self.totals_of(cells).sum())

    def cells_of(self, home: int) -> NDArray[np.int64]:
        """Cells of one row, in the order in which the pairs first met."""
        return np.sort(self._index.row(home)[1]).astype(np.int64)

    def _present(self, cells: NDArray[np.integer], moved: NDArray[np.float64]) -> NDArray[np.float64]:
        """As `present`. moved: float64 [C], how far both policies of each cell have moved by now."""
        rows = self._rows.values.take(cells)
        present, age = np.zeros((len(rows), 2)), moved
        fading = (rows < 0).nonzero()[0]
        if len(fading) < len(rows):  # read as if all were still: nearly all are, and a mask would cost more
            still = np.maximum(rows, 0)
            scores, totals = self._still_scores.values.take(still, 0), self._still_totals.values.take(still, 0)
            for seat in range(self._num_seats):  # one by one, which is quicker than the sum over so short an axis
                present[:, SCORE] += scores[:, seat]
            present[:, GAMES] = totals.reshape(len(rows), -1).sum(axis=1)
        if len(fading):
            own = -1 - rows.take(fading)
            weights = self._weights.values.take(own, 0)
            present[fading] = functools.reduce(np.add, (weights[:, seat] for seat in range(self._num_seats)))
            age = moved.copy()
            age[fading] -= self._clock.values.take(own)
        present *= self._faded(age)[:, None]
        return present

    def _moved(self, cells: NDArray[np.integer], staleness_clock: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [C], trained steps that both policies of cells have moved by now."""
        home, away = self._home.values.take(cells), self._away.values.take(cells)
        moved: NDArray[np.float64] = staleness_clock[home] + staleness_clock[away]
        return moved

    def _faded(self, age: NDArray[np.float64]) -> NDArray[np.float64]:
        faded: NDArray[np.float64] = np.exp2(-age / self.half_life_steps)
        return faded

    def _clock_of(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """float64 [C] of the cells with these rows."""
        clock = np.zeros(len(rows))
        clock[rows < 0] = self._clock.values[-1 - rows[rows < 0]]
        return clock

    def _weights_of(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """float64 [C, S, 2] of the cells with these rows."""
        weights = np.empty((len(rows), self._num_seats, 2))
        weights[..., SCORE] = self._gather(rows, self._still_scores, self._scores)
        weights[..., GAMES] = self._gather(rows, self._still_totals, self._totals).sum(axis=2)
        weights[rows < 0] = self._weights.values[-1 - rows[rows < 0]]
        return weights

    def _gather(self, rows: NDArray[np.int32], still: NarrowArray, fading: NarrowArray) -> NDArray[Any]:
        """Out of two tables, for the cells with these rows; of the type of the second."""
        gathered = np.empty((len(rows), *fading.values.shape[1:]), dtype=fading.values.dtype)
        is_fading = rows < 0
        gathered[is_fading] = fading.values[-1 - rows[is_fading]]
        gathered[~is_fading] = still.values[rows[~is_fading]]
        return gathered

    def _new_cell(self, home: int, away: int, now: float) -> int:
        """Index of a cell without games: still where neither policy has moved."""
        self._home.append(home)
        self._away.append(away)
        if now == 0.0:
            self._still_scores.append()
            cell = self._rows.append(self._still_totals.append())
        else:
            cell = self._rows.append(-1 - self._clock.append(now))
            for table in (self._weights, self._totals, self._scores):
                table.append()
        self._index.add(home, away, cell)
        return cell

    def _begin_to_fade(self, cell: int) -> int:
        """Move a still cell to the fading ones and return its row there; the old row is left unused."""
        still = self._rows.values[cell : cell + 1].copy()
        row = self._clock.append(0.0)
        self._weights.append(*self._weights_of(still).ravel().tolist())
        self._totals.append(*self._still_totals.values[still].ravel().tolist())
        self._scores.append(*self._still_scores.values[still].ravel().tolist())
        self._rows.numbers[cell] = -1 - row
        return row
