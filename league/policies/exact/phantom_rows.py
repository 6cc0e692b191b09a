"""The endings of a phantom game as rows of stones, and the records of both seats that each row links.

A record is what one seat knows: the cells that it tried, in order, and a pattern that says where it placed a stone and
where it found one of the other seat. Given all stones and their times, what one seat found is free of what the other
found. So rows of stones link the records of both seats: thousands of times fewer than pairs of records, each of which
is an ending of the game. Stones between which the other seat cannot have found anything may be placed in any order:
rows that differ in nothing else are one.

Shape letters: C cells, R rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.games.phantom import PhantomRules

Whole = NDArray[np.int64]
Pattern = tuple[bool, ...]
"""For each try of a seat: True where it placed a stone, False where it found one."""

Columns = tuple[int, ...]
"""The stones of a row that a record tries, in order."""


@dataclass(frozen=True)
class Finds:
    """A pattern of a seat, and for each of its finds the number of stones that the other seat had placed before."""

    pattern: Pattern = ()
    before: tuple[int, ...] = ()

    def placed(self) -> Finds:
        """With one more stone of its own."""
        return Finds((*self.pattern, True), self.before)

    def found(self, stones: int) -> Finds:
        """With one more find, of one of so many `stones`."""
        return Finds((*self.pattern, False), (*self.before, stones))

    @property
    def num_stones(self) -> int:
        """Its own stones."""
        return sum(self.pattern)


Timing = tuple[tuple[Finds, ...], tuple[Finds, ...]]
"""Possible finds of both seats; any of the first seat goes with any of the second."""


@dataclass(frozen=True)
class Rows:
    """Endings with as many stones, after which the same may have been found.

    Fields:
      stones: int64 [stones, R], cells: those of the first seat in their order, then those of the second.
      payoff: float64 [R], of the first seat.
      timings: each of which goes with every row.
      orders: of each seat, the columns of its stones in every order that a row stands for.
    """

    stones: Whole
    payoff: NDArray[np.float64]
    timings: tuple[Timing, ...]
    orders: tuple[tuple[Columns, ...], tuple[Columns, ...]]

    @property
    def num_links(self) -> int:
        """Links to records of both seats."""
        ways = [
            len(self.orders[seat]) * math.prod(stones - place for place, stones in enumerate(finds.before))
            for timing in self.timings
            for seat in (0, 1)
            for finds in timing[seat]
        ]
        return self.payoff.size * sum(ways)

    def records(self, timing: Timing, seat: int) -> list[tuple[Pattern, Columns]]:
        """The last decisions of a seat that its rows link: the pattern before, and the columns of all its tries."""
        others = self.orders[1 - seat][0]
        return [
            (finds.pattern[:-1], columns)
            for finds in timing[seat]
            for order in self.orders[seat]
            for columns in _tries(finds, order, others)
        ]


def _tries(finds: Finds, order: Columns, others: Columns) -> Iterator[Columns]:
    """The columns that a record tries: its stones in this order, and different stones of `others` at its finds."""
    for found in itertools.product(*(others[:stones] for stones in finds.before)):
        if len(set(found)) == len(found):
            own, hits = iter(order), iter(found)
            yield tuple(next(own) if placed else next(hits) for placed in finds.pattern)


def tries_of(num_cells: int, num_tries: int) -> NDArray[np.int8]:
    """[P(C, T), T], every order of T different cells, the first cell slowest."""
    tries = np.zeros((1, 0), np.int8)
    for _ in range(num_tries):
        row, cell = np.nonzero(untried(tries, num_cells))
        tries = np.concatenate([tries[row], cell[:, None].astype(np.int8)], axis=1)
    return tries


def untried(tries: NDArray[np.int8], num_cells: int) -> NDArray[np.bool_]:
    """bool [K, C], the cells that are not among the tries [K, T]."""
    free = np.ones((len(tries), num_cells), np.bool_)
    np.put_along_axis(free, tries.astype(np.int64), values=False, axis=1)
    return free


def rows_of(rules: PhantomRules) -> list[Rows]:
    """All endings of a game."""
    found: list[Rows] = []
    for num_stones in range(1, rules.num_cells + 1):
        stones = tries_of(rules.num_cells, num_stones).astype(np.int64)
        for first, last in itertools.product(range(num_stones + 1), (0, 1)):
            counts = (first, num_stones - first)
            timings = list(_timings(counts, last, is_abrupt=rules.is_abrupt)) if counts[last] else []
            if timings:
                found += _merged(*_endings(rules, stones, counts, last), counts, last, timings)
    return found


def _endings(rules: PhantomRules, stones: Whole, counts: tuple[int, int], last: int) -> tuple[Whole, Whole]:
    """The rows [R, stones] that end a game with the last stone of seat `last`, and the first seat's payoffs."""
    bits = 1 << stones
    sets = bits[:, : counts[0]].sum(axis=1), bits[:, counts[0] :].sum(axis=1)
    before = sets[last] - bits[:, counts[0] - 1 if last == 0 else -1]
    won, full = rules.wins[last][sets[last]], sets[0] + sets[1] == (1 << rules.num_cells) - 1
    ended = (won | full) & ~rules.wins[last][before] & ~rules.wins[1 - last][sets[1 - last]]
    return stones[ended], np.where(won, 1 - 2 * last, 0)[ended]


def _merged(
    stones: Whole, payoff: Whole, counts: tuple[int, int], last: int, timings: Sequence[Timing]
) -> Iterator[Rows]:
    """The rows for each kind of timings, of those that differ in the order of some stones only one."""
    by_borders: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Timing]] = {}
    for timing in timings:
        first, second = (_borders(timing[1 - seat], counts[seat], ends=seat == last) for seat in (0, 1))
        by_borders.setdefault((first, second), []).append(timing)
    for borders, alike in by_borders.items():
        kept, orders = np.ones(len(stones), np.bool_), []
        for seat, own in enumerate(borders):
            columns = range(counts[0]) if seat == 0 else range(counts[0], sum(counts))
            groups = [columns[begin:end] for begin, end in itertools.pairwise((0, *own, counts[seat]))]
            for group in groups:
                kept &= (np.diff(stones[:, group], axis=1) > 0).all(axis=1)
            parts = itertools.product(*(itertools.permutations(group) for group in groups))
            orders.append(tuple(tuple(itertools.chain(*part)) for part in parts))
        if kept.any():
            rows = np.ascontiguousarray(stones[kept].T)
            yield Rows(rows, payoff[kept].astype(np.float64), tuple(alike), (orders[0], orders[1]))


def _borders(finds: Sequence[Finds], num_stones: int, *, ends: bool) -> tuple[int, ...]:
    """Numbers of a seat's stones at which the other may have found some of them; the last stone of a game is alone."""
    places = {stones for one in finds for stones in one.before} | ({num_stones - 1} if ends else set())
    return tuple(sorted(place for place in places if 0 < place < num_stones))


def _timings(counts: tuple[int, int], last: int, *, is_abrupt: bool) -> Iterator[Timing]:
    """Possible finds of both seats in games that end with the last of so many stones, which seat `last` places."""
    if is_abrupt:
        yield from _abrupt((Finds(), Finds()), counts, last)
    elif counts[0] - counts[1] == 1 - last:
        yield tuple(_patient(counts[0], ahead=0)), tuple(_patient(counts[1], ahead=1))


def _patient(num_stones: int, *, ahead: int) -> Iterator[Finds]:
    """Finds of a seat that tries until it places a stone. ahead: stones that the other seat has more in its turns."""
    started = [Finds()]
    for turn in range(num_stones):
        stones = turn + ahead
        more = started
        for _ in range(stones):
            more = [finds.found(stones) for finds in more if len(finds.before) < stones]
            started = [*started, *more]
        started = [finds.placed() for finds in started]
    yield from started


def _abrupt(finds: tuple[Finds, Finds], counts: tuple[int, int], last: int) -> Iterator[Timing]:
    """The timings that begin with these finds, where seats take turns whatever they meet."""
    seat = (len(finds[0].pattern) + len(finds[1].pattern)) % 2
    own, other = finds[seat], finds[1 - seat]
    left = counts[seat] - own.num_stones, counts[1 - seat] - other.num_stones
    after = [own.placed()] if left[0] > (seat == last) else []
    if len(own.before) < other.num_stones:
        after.append(own.found(other.num_stones))
    if seat == last and left == (1, 0):
        done = own.placed()
        yield ((done,), (other,)) if seat == 0 else ((other,), (done,))
    for more in after:
        yield from _abrupt((more, other) if seat == 0 else (other, more), counts, last)
