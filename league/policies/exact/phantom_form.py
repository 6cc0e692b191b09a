"""Best replies in phantom games: products over rows of stones instead of a walk over billions of histories.

The decisions of a seat after one pattern are one array, [P(C, T), C - T] for T tries so far: what it knows in the order
of its cells, then each cell that it may try. Flat, that is again the order of P(C, T + 1) = C! / (C - T - 1)! tries. So
a best reply is a maximum over the last axis. How likely a seat's own decisions place the stones of a row is a sum over
the decisions that the row links. A best reply earns by each of its decisions the sum over all rows that link it.

Shape letters: C cells, T tries, R rows, M policies, Q numbers of a plan: one for each seat, timing and row.
Source: von Stengel 1996 (sequence form); Johanson et al. 2011, Accelerating best response calculation in large
extensive games (the walk over what is known to all).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.envs.games.phantom import PhantomRules
from league.policies.exact.phantom_rows import Columns, Pattern, Whole, rows_of, tries_of

Array = NDArray[np.float64]

Tables = dict[Pattern, Array]
"""A number for each decision of one seat: the pattern before -> [P(C, T + 1)]; one number for a seat that has none."""

Decide = Callable[[Pattern, Array], Array]
"""Takes the pattern of some records and how likely its seat's own decisions lead to each, [P(C, T)]; answers the
probability of every untried cell, [P(C, T), C - T], in the order of the cells."""

Share = Callable[[float], None]
"""Takes the part of a pass that is done, in [0, 1]."""

ROWS_AT_ONCE = 4096
"""Rows of one step, whose arrays stay in the cache of a core."""

BOTH = (0, 1)


def quiet(share: float) -> None:
    """Reports nothing."""


@dataclass
class _Step:
    """Some rows of one timing after the other.

    Fields:
      cells: int64 [stones, R]. below: int64 [stones, stones, R], -1 where the first stone's cell is below the second's.
      payoff: [R]. ranks: places of records in their arrays, by their columns.
    """

    num_cells: int
    cells: Whole
    payoff: Array
    ranks: dict[Columns, Whole] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.below = -(self.cells[:, None] < self.cells).astype(np.int64)
        self.ranks[()] = np.zeros(self.payoff.size, np.int64)

    def places(self, columns: Columns) -> Whole:
        """[R], where the record that tries these stones stands among the records of its pattern."""
        known = self.ranks.get(columns)
        if known is None:
            before, last = columns[:-1], columns[-1]
            known = self.places(before) * (self.num_cells - len(before))
            known += self.cells[last]
            for earlier in before:
                known += self.below[earlier, last]
            self.ranks[columns] = known
        return known


class PhantomForm:
    """Payoffs and best replies of a phantom game."""

    num_seats = 2
    is_zero_sum = True

    def __init__(self, rules: PhantomRules) -> None:
        self.rules, self._cells = rules, rules.num_cells
        self._rows = rows_of(rules)
        self.tries = [tries_of(self._cells, count) for count in range(self._cells + 1)]
        """For each number of tries int8 [P(C, T), T], in the order of the arrays of records."""
        self.decisions: list[set[Pattern]] = [set(), set()]
        """Of each seat, the patterns of its information states."""
        for seat in BOTH:
            finds = (one for rows in self._rows for timing in rows.timings for one in timing[seat])
            self.decisions[seat] = {one.pattern[:count] for one in finds for count in range(len(one.pattern))}

    @property
    def num_rows(self) -> int:
        """Rows of all timings: half of Q."""
        return sum(rows.payoff.size * len(rows.timings) for rows in self._rows)

    @property
    def num_links(self) -> int:
        """Links of rows and records, each of which a pass reads and writes once."""
        return sum(rows.num_links for rows in self._rows)

    def is_reached(self, seat: int, pattern: Pattern) -> NDArray[np.bool_]:
        """bool [P(C, T)], the records of a pattern at which their seat may have to decide: information states."""
        bits, placed = 1 << self.tries[len(pattern)].astype(np.int64), np.array(pattern, np.bool_)
        keys = bits[:, placed].sum(axis=1) << self._cells | bits[:, ~placed].sum(axis=1)
        met = np.zeros(1 << 2 * self._cells, np.bool_)
        met[keys] = True
        pairs = np.flatnonzero(met)
        own, found = pairs >> self._cells, pairs & ((1 << self._cells) - 1)
        possible = np.zeros(pairs.size, np.bool_)
        for other in self._possible(seat, pattern).tolist():
            possible |= ((other & found) == found) & ((other & own) == 0) & ((other | own) != (1 << self._cells) - 1)
        met[pairs] = possible & ~self.rules.wins[seat][own]
        reached: NDArray[np.bool_] = met[keys]
        return reached

    def _possible(self, seat: int, pattern: Pattern) -> Whole:
        """The sets of stones that the other seat may have when this one decides after the pattern."""
        sets = np.arange(1 << self._cells)
        sizes, stones, turns = np.bitwise_count(sets).astype(np.int64), sum(pattern), len(pattern) + seat
        most, least = (turns, turns - stones) if self.rules.is_abrupt else (stones + seat, stones + seat)
        possible: Whole = sets[(sizes >= least) & (sizes <= most) & ~self.rules.wins[1 - seat]]
        return possible

    def reach(self, seat: int, decide: Decide) -> Tables:
        """The probability that a seat's own decisions lead to each of its decisions; 1 for a seat that has none."""
        tables: Tables = {}

        def fill(pattern: Pattern, reached: Array) -> None:
            tables[pattern] = (reached[:, None] * decide(pattern, reached)).ravel()
            for after in _after(pattern, self.decisions[seat]):
                fill(after, tables[pattern])

        if self.decisions[seat]:
            fill((), np.ones(1))
        return tables or {(): np.ones(1)}

    def plan(self, seat: int, reach: Tables) -> Array:
        """[Q / 2], how likely a seat's own decisions place its stones in every row."""
        return np.concatenate([self._played(step, records[seat], reach) for step, records in self._steps()])

    def nash_conv_of(self, first: Tables, second: Tables, share: Share = quiet) -> float:
        """NashConv of what `reach` tells of both seats; plans are made and used up row by row."""
        reaches, worth = (first, second), (self._nothing(0), self._nothing(1))
        for step, records in self._steps(share):
            played = [self._played(step, records[seat], reaches[seat]) for seat in BOTH]
            for seat in BOTH:
                self._earn(worth[seat], step, records[seat], played[1 - seat], seat)
        return sum(self._best(seat, worth[seat])[0] for seat in BOTH)

    def best_reply(self, plan: Array, seat: int) -> tuple[float, Array]:
        """The earnings of a seat's best reply to the plan [Q] of the other, and its plan [Q], 0 for the other."""
        worth, begin, others = self._nothing(seat), 0, self._part(plan, 1 - seat)
        for step, records in self._steps():
            end = begin + step.payoff.size
            self._earn(worth, step, records[seat], others[begin:end], seat)
            begin = end
        value, choices = self._best(seat, worth)
        reply = np.zeros(plan.size)
        self._part(reply, seat)[:] = self.plan(seat, self.reach(seat, lambda pattern, reached: choices[pattern]))
        return value, reply

    def against_each(self, reply: Array, seat: int, plans: Array) -> Array:
        """[M], what `seat` earns with `reply`, [Q], against each of the plans [M, Q]."""
        own = self._part(reply, seat) * self._payoffs() * (1 - 2 * seat)
        return np.array([float(self._part(plan, 1 - seat) @ own) for plan in plans])

    def pairwise_values(self, plans: Array) -> Array:
        """[M, M], what each plan of [M, Q] earns against each other, as the mean of both seats."""
        half = plans.shape[1] // 2
        as_first: Array = (plans[:, :half] * self._payoffs()) @ plans[:, half:].T
        return 0.5 * (as_first - as_first.T)

    def nash_conv(self, plan: Array) -> float:
        """NashConv, when both seats play the plan [Q]."""
        return sum(self.best_reply(plan, seat)[0] for seat in BOTH)

    def _steps(self, share: Share = quiet) -> Iterator[tuple[_Step, tuple[list[tuple[Pattern, Columns]], ...]]]:
        """The rows in parts, with the records of both seats that they link."""
        done, total = 0, self.num_rows
        for rows in self._rows:
            records = [(rows.records(timing, 0), rows.records(timing, 1)) for timing in rows.timings]
            for begin in range(0, rows.payoff.size, ROWS_AT_ONCE):
                part = slice(begin, begin + ROWS_AT_ONCE)
                step = _Step(self._cells, np.ascontiguousarray(rows.stones[:, part]), rows.payoff[part])
                for links in records:
                    yield step, links
                done += step.payoff.size * len(records)
                share(done / total)

    def _played(self, step: _Step, records: list[tuple[Pattern, Columns]], reach: Tables) -> Array:
        played = np.zeros(step.payoff.size)
        for pattern, columns in records:
            played += reach[pattern].take(step.places(columns), mode="clip")
        return played

    def _earn(
        self, worth: Tables, step: _Step, records: list[tuple[Pattern, Columns]], others: Array, seat: int
    ) -> None:
        earned = others * step.payoff * (1 - 2 * seat)
        for pattern, columns in records:
            np.add.at(worth[pattern], step.places(columns), earned)

    def _best(self, seat: int, worth: Tables) -> tuple[float, Tables]:
        """The earnings of the best choices in all information states, and these choices, [P(C, T), C - T] each."""
        choices: Tables = {}

        def best(pattern: Pattern) -> Array:
            for after in _after(pattern, self.decisions[seat]):
                worth[pattern] += best(after)
            by_cell = worth[pattern].reshape(-1, self._cells - len(pattern))
            choices[pattern] = by_cell.argmax(axis=1)[:, None] == np.arange(by_cell.shape[1])
            highest: Array = by_cell.max(axis=1)
            return highest

        return float((best(()) if self.decisions[seat] else worth[()])[0]), choices

    def _nothing(self, seat: int) -> Tables:
        own = self.decisions[seat]
        return {one: np.zeros(math.perm(self._cells, len(one) + 1)) for one in own} or {(): np.zeros(1)}

    def _part(self, plan: Array, seat: int) -> Array:
        half = plan.size // 2
        return plan[:half] if seat == 0 else plan[half:]

    def _payoffs(self) -> Array:
        """[Q / 2], of the first seat."""
        return np.concatenate([step.payoff for step, _ in self._steps()])


def _after(pattern: Pattern, decisions: set[Pattern]) -> list[Pattern]:
    """The patterns of the next decisions, after one more try."""
    return [after for after in ((*pattern, True), (*pattern, False)) if after in decisions]
