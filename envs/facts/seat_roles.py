"""Tells seats apart where observations do not: they see the same and are paid differently, or see the same always.

Seats with equal spaces share networks unless something says that they must not. In a symmetric game, or where each seat
sees itself first, that is right. A network that is shown the same for an attacker and a defender plays both alike.

Two seats have different roles where the same view, own action and action of the other are followed by other rewards.
The difference of their means is compared with the spread of each. Where views hardly ever come again, seats that
always saw the same at the same moment cannot know who they are.

Shape letters: D decisions, N games at once, S seats, K slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec, Turn

MAX_SEATS = 8
"""Seats up to which roles are looked for; each has networks of its own."""

MAX_DECISIONS = 20_000
"""Decisions that are looked at."""

MIN_SHARE = 0.1
"""Of the decisions of two seats: those in equal views that both had, from which rewards can tell."""

ENOUGH_SHARE = 0.5
"""The same, from which rewards alone tell; with fewer, views that are always equal tell too."""

MIN_EFFECT = 0.02
"""Share of the variance of rewards that the seat must explain."""

MIN_DECISIONS = 8
"""Decisions of each seat in a cell from which it counts."""

DEVIATIONS, MAX_CERTAINTY = 8.0, 100.0
"""Standard deviations by which the differences must exceed those of chance, and the most that one cell adds."""

ENOUGH_VIEWS = 20
"""Different views of two seats at the same moment, all equal, from which they always see the same."""

UNEVEN_RETURNS = 10.0
"""Ratio between the sizes of two seats' returns from which they earn on scales of their own."""


class SeatRoles:
    """Collects decisions of games at random: call `decided` and `stepped` in turn for every step.

    Args:
      spec: of the game. Where its seats have no names nobody could group them, and nothing is collected.
      num_envs: N.
    """

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        self._spec = spec
        self._kinds = np.zeros(spec.num_seats, np.int64)
        for kind, group in enumerate(spec.seat_groups):
            self._kinds[list(group.seats)] = kind
        self._pairs = [
            (one, two) for one, two in combinations(range(spec.num_seats), 2) if self._kinds[one] == self._kinds[two]
        ]
        if not spec.seat_names or spec.num_seats > MAX_SEATS:
            self._pairs = []
        self._cells: list[tuple[int, int]] = []
        self._seats: list[int] = []
        self._next: list[float] = []
        self._rest: list[float] = []
        self._equal_views: dict[tuple[int, int], set[int] | None] = {pair: set() for pair in self._pairs}
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        seats = self._spec.num_seats
        self._earned = np.zeros((num_envs, seats))
        self._pending: list[list[tuple[int, float]]] = [[] for _ in range(num_envs)]
        self._last = np.full((num_envs, seats), -1, np.int64)

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        if not self._pairs or len(self._cells) >= MAX_DECISIONS:
            self._last[:] = -1
            return
        chosen = _coarse(actions)
        views = [
            hash(tuple(array[slot].tobytes() for array in turn.obs.values())) for slot in range(turn.env_index.size)
        ]
        at_once: dict[int, dict[int, int]] = {}
        for slot, (game, seat) in enumerate(zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True)):
            at_once.setdefault(game, {})[seat] = slot
        for game, slots in at_once.items():
            self._compare(slots, views)
            for seat, slot in slots.items():
                others = [chosen[other] for one, other in slots.items() if one != seat]
                self._last[game, seat] = len(self._cells)
                self._pending[game].append((len(self._cells), float(self._earned[game, seat])))
                self._cells.append((hash((views[slot], chosen[slot])), hash((views[slot], chosen[slot], *others))))
                self._seats.append(seat)
                self._next.append(np.nan)
                self._rest.append(np.nan)

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        if not self._pairs:
            return
        going = ~turn.ended[turn.env_index]
        for game, seat in zip(turn.env_index[going].tolist(), turn.seat[going].tolist(), strict=True):
            self._earn(game, seat, float(turn.rewards[game, seat]))
        for game in np.flatnonzero(turn.ended).tolist():
            for seat in range(self._spec.num_seats):
                self._earn(game, seat, float(turn.rewards[game, seat]))
            for decision, before in self._pending[game]:
                self._rest[decision] = float(turn.returns[game, self._seats[decision]]) - before
            self._pending[game].clear()
            self._earned[game], self._last[game] = 0.0, -1

    def groups(self, sizes: Sequence[float]) -> tuple[tuple[tuple[int, ...], ...], str]:
        """Seats that may share networks, and why not all of a kind do; nothing where all may.

        Args:
          sizes: [S] of the returns; empty if unknown.
        """
        rest, reasons = list(self._pairs), []
        for pair in self._pairs:
            reason = self._difference(pair, sizes)
            if reason:
                rest.remove(pair)
                reasons.append(reason)
        if not reasons:
            return (), ""
        joined = {seat: {seat} for seat in range(self._spec.num_seats)}
        for one, two in rest:
            if joined[one] is not joined[two]:
                joined[one] |= joined[two]
                for seat in joined[two]:
                    joined[seat] = joined[one]
        found = sorted({tuple(sorted(group)) for group in joined.values()})
        return (tuple(found), reasons[0]) if len(found) > len(set(self._kinds.tolist())) else ((), "")

    def _difference(self, pair: tuple[int, int], sizes: Sequence[float]) -> str:
        """The reason to take two seats for different roles; empty without one."""
        one, two = (self._spec.seat_names[seat] for seat in pair)
        if sizes:
            small, large = sorted(sizes[seat] for seat in pair)
            if small > 0.0 and large > UNEVEN_RETURNS * small:
                return f"{one} and {two} earn on scales of their own, {small:.2g} and {large:.2g}"
        seats, cells = np.array(self._seats, np.int64), np.array(self._cells, np.int64).reshape(-1, 2)
        own = (seats == pair[0]) | (seats == pair[1])
        share = 0.0
        for rewards, column in product((np.array(self._next), np.array(self._rest)), (0, 1)):
            kept = own & ~np.isnan(rewards)
            covered, are_unlike = differ(cells[kept, column], seats[kept] == pair[0], rewards[kept])
            share = max(share, covered)
            if covered >= MIN_SHARE and are_unlike:
                return f"{one} and {two} see the same and are paid differently"
        views = self._equal_views[pair]
        if share < ENOUGH_SHARE and views is not None and len(views) >= ENOUGH_VIEWS:
            return f"{one} and {two} always see the same, which does not say who is who"
        return ""

    def _earn(self, game: int, seat: int, reward: float) -> None:
        last = int(self._last[game, seat])
        if last >= 0:
            self._next[last] = reward
        self._last[game, seat] = -1
        self._earned[game, seat] += reward

    def _compare(self, slots: dict[int, int], views: list[int]) -> None:
        """Note whether seats that act at once see the same."""
        if len(slots) < 2:
            return
        for pair, seen in self._equal_views.items():
            if seen is None or pair[0] not in slots or pair[1] not in slots:
                continue
            if views[slots[pair[0]]] == views[slots[pair[1]]]:
                seen.add(views[slots[pair[0]]])
            else:
                self._equal_views[pair] = None


def differ(cells: NDArray[np.int64], is_first: NDArray[np.bool_], rewards: NDArray[np.float64]) -> tuple[float, bool]:
    """(share of decisions in cells that both seats had often enough, whether their rewards differ there).

    Welch's statistic of each cell, whose spread is its own: large stakes are rarer than small ones. Squares are summed.

    Args:
      cells: int64 [D], which view and actions. is_first: bool [D], of the first of two seats. rewards: float64 [D].
    """
    if not cells.size:
        return 0.0, False
    cell = np.unique(cells, return_inverse=True)[1].reshape(-1)
    sides = [(cell[mine], rewards[mine] - rewards.mean()) for mine in (is_first, ~is_first)]
    numbers, sums, squares = (
        np.stack([np.bincount(of_cell, values**power, cell.max() + 1) for of_cell, values in sides])
        for power in range(3)
    )
    both = numbers.min(axis=0) >= MIN_DECISIONS
    if not both.any():
        return 0.0, False
    numbers, sums, squares = numbers[:, both], sums[:, both], squares[:, both]
    share, total = numbers.sum() / cells.size, squares.sum() - sums.sum() ** 2 / numbers.sum()
    if total <= 0.0:
        return float(share), False
    means = sums / numbers
    spreads = np.maximum(squares - numbers * means**2, 1e-9 * total) / (numbers - 1.0)
    distances, errors = (means[0] - means[1]) ** 2, (spreads / numbers).sum(axis=0)
    found = np.minimum(distances / errors, MAX_CERTAINTY).sum()
    by_chance = both.sum() + DEVIATIONS * (1.0 + np.sqrt(2.0 * both.sum()))
    weights = numbers.prod(axis=0) / numbers.sum(axis=0)
    effect = (weights * (distances - errors)).sum() / total
    return float(share), bool(found > by_chance and effect >= MIN_EFFECT)


def _coarse(actions: NDArray[np.generic]) -> list[bytes]:
    """[K] actions as keys; of a box the signs alone, for its numbers never come again."""
    kept = actions > np.zeros(1, actions.dtype) if actions.dtype.kind == "f" else actions
    return [one.tobytes() for one in np.ascontiguousarray(kept)]
