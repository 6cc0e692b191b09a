"""Tells seats apart where observations do not: they see the same and are paid differently, or see the same always.

Seats with equal spaces share networks unless something says that they must not. In a symmetric game, or where each seat
sees itself first, that is right. A network that is shown the same for an attacker and a defender plays both alike.

Two seats have different roles where the same view, own action and action of the others are followed by other rewards.
Where they always see the same at the same moment, it is enough that actions or views go with other rewards, or that
actions change the views otherwise: then a seat cannot know who it is. Two seats also differ if they earn on scales of
their own. Each of the three must be more than exchanges of the seats in whole games would show by chance.

Shape letters: D decisions, N games at once, S seats, K slots, F features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from league.envs.facts.seat_exchange import blocks_of, by_cell, by_feature, exchange_is_seen
from league.envs.protocol import ActionSpec, EnvSpec, Turn
from league.envs.text.number_text import number_text

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

ENOUGH_VIEWS = 20
"""Different views of two seats at the same moment, all equal, from which they always see the same."""

UNEVEN_RETURNS = 10.0
"""Ratio between the sizes of two seats' returns from which they earn on scales of their own."""

ERROR_RATE = 1.0 / 3_000
"""Probability of a false alarm in a symmetric game, all pairs of seats and rules together."""

RULES = 3

MAX_NUMBERS = 64
"""Numbers of a view up to which each is compared with rewards; seats that always see the same larger view are always
taken for different roles."""

MAX_FEATURES = 8
"""Numbers that stand for an action."""


@dataclass
class _Decisions:
    """Facts of each decision, lists of length D.

    Fields:
      cells: hashes of (view, own action) and of (view, own action, actions of the others).
      games: number of the game. follow: the seat's next decision in that game, -1 for none.
      next, rest: reward up to that decision, and up to the end of the game; NaN where it is unknown.
      views, actions, others: features [F], kept as long as seats may always see the same.
    """

    cells: list[tuple[int, int]] = field(default_factory=list)
    seats: list[int] = field(default_factory=list)
    games: list[int] = field(default_factory=list)
    follow: list[int] = field(default_factory=list)
    next: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)
    views: list[NDArray[np.float64]] = field(default_factory=list)
    actions: list[NDArray[np.float64]] = field(default_factory=list)
    others: list[NDArray[np.float64]] = field(default_factory=list)


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
        self._error_rate = ERROR_RATE / (RULES * max(len(self._pairs), 1))
        self._seen = _Decisions()
        self._ends: list[tuple[int, NDArray[np.float64]]] = []  # (game, returns [S])
        self._equal_views: dict[tuple[int, int], set[int] | None] = {pair: set() for pair in self._pairs}
        numbers = sum(math.prod(array.shape) for array in spec.observations.values())
        self._has_features = numbers <= MAX_NUMBERS
        self._num_games = 0
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        seats = self._spec.num_seats
        self._earned = np.zeros((num_envs, seats))
        self._pending: list[list[tuple[int, float]]] = [[] for _ in range(num_envs)]
        self._last = np.full((num_envs, seats), -1, np.int64)  # decisions whose next reward is not known yet
        self._before = np.full((num_envs, seats), -1, np.int64)
        self._games = list(range(self._num_games, self._num_games + num_envs))
        self._num_games += num_envs

    def decided(self, turn: Turn, actions: NDArray[np.generic]) -> None:
        """A turn and the actions that answer it."""
        seen = self._seen
        if not self._pairs or len(seen.cells) >= MAX_DECISIONS:
            self._last[:] = -1
            return
        chosen = _coarse(actions)
        views = [
            hash(tuple(array[slot].tobytes() for array in turn.obs.values())) for slot in range(turn.env_index.size)
        ]
        numbers = self._features(turn, actions)
        at_once: dict[int, dict[int, int]] = {}
        for slot, (game, seat) in enumerate(zip(turn.env_index.tolist(), turn.seat.tolist(), strict=True)):
            at_once.setdefault(game, {})[seat] = slot
        for game, slots in at_once.items():
            self._compare(slots, views)
            for seat, slot in slots.items():
                # In no order: which of the others is first changes when seats are exchanged.
                others = sorted(chosen[other] for one, other in slots.items() if one != seat)
                place, before = len(seen.cells), int(self._before[game, seat])
                if before >= 0:
                    seen.follow[before] = place
                self._last[game, seat] = self._before[game, seat] = place
                self._pending[game].append((place, float(self._earned[game, seat])))
                seen.cells.append((hash((views[slot], chosen[slot])), hash((views[slot], chosen[slot], *others))))
                seen.seats.append(seat)
                seen.games.append(self._games[game])
                seen.follow.append(-1)
                seen.next.append(np.nan)
                seen.rest.append(np.nan)
                if numbers is not None:
                    beside = [numbers[1][other] for one, other in slots.items() if one != seat]
                    seen.views.append(numbers[0][slot])
                    seen.actions.append(numbers[1][slot])
                    seen.others.append(np.mean(beside, axis=0) if beside else np.zeros_like(numbers[1][slot]))

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
                self._seen.rest[decision] = float(turn.returns[game, self._seen.seats[decision]]) - before
            self._ends.append((self._games[game], turn.returns[game].astype(np.float64)))
            self._pending[game].clear()
            self._earned[game], self._last[game], self._before[game] = 0.0, -1, -1
            self._games[game] = self._num_games
            self._num_games += 1

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
            if small > 0.0 and large > UNEVEN_RETURNS * small and self._earn_apart(pair):
                return (
                    f"{one} and {two} earn on scales of their own, {number_text(small, 2)} and {number_text(large, 2)}"
                )
        seats = np.array(self._seen.seats, np.int64)
        own = np.flatnonzero((seats == pair[0]) | (seats == pair[1]))
        share, are_unlike = self._are_paid_apart(own, seats[own] == pair[0])
        if are_unlike:
            return f"{one} and {two} see the same and are paid differently"
        views = self._equal_views[pair]
        always_equal = views is not None and len(views) >= ENOUGH_VIEWS and share < ENOUGH_SHARE
        if always_equal and (not self._has_features or self._acts_apart(own, seats[own] == pair[0])):
            return f"{one} and {two} always see the same, which does not say who is who"
        return ""

    def _earn_apart(self, pair: tuple[int, int]) -> bool:
        """True if the sizes of two seats' returns differ by more than chance."""
        returns = np.abs([returned[list(pair)] for _, returned in self._ends])
        blocks = blocks_of(np.array([game for game, _ in self._ends], np.int64))
        apart = np.bincount(blocks, returns[:, 0] - returns[:, 1]).astype(np.float64)
        return exchange_is_seen([apart[:, None]], error_rate=self._error_rate)

    def _are_paid_apart(self, own: NDArray[np.int64], is_first: NDArray[np.bool_]) -> tuple[float, bool]:
        """(share of decisions in cells that both seats had often enough, whether their rewards differ there).

        own: int64 [D], decisions of two seats. is_first: bool [D], of the first of them.
        """
        cells, blocks = np.array(self._seen.cells, np.int64).reshape(-1, 2)[own], self._blocks(own)
        groups, counted, most = [], [], 0.0
        for rewards, column in product((np.array(self._seen.next)[own], np.array(self._seen.rest)[own]), (0, 1)):
            kept = ~np.isnan(rewards)
            of = cells[kept, column], is_first[kept], rewards[kept]
            share, effect = effect_of_seat(*of)
            most = max(most, share)
            counted.append(share >= MIN_SHARE and effect >= MIN_EFFECT)
            groups.append((*of, blocks[kept]))
        if not any(counted):
            return most, False
        differences = [by_cell(*of, min_decisions=2 * MIN_DECISIONS) for of in groups]
        return most, exchange_is_seen(differences, error_rate=self._error_rate, counted=counted)

    def _acts_apart(self, own: NDArray[np.int64], is_first: NDArray[np.bool_]) -> bool:
        """True if actions or views go with other rewards for one seat than for another that always sees the same."""
        views, actions, others = (
            np.array(kept)[own] for kept in (self._seen.views, self._seen.actions, self._seen.others)
        )
        views = (views - views.mean(axis=0)) / np.maximum(views.std(axis=0), 1e-9)
        actions, others = actions - actions.mean(axis=0), others - others.mean(axis=0)
        beside = np.concatenate([np.ones((len(views), 1)), views], axis=1)
        jointly = (actions[:, :, None] * others[:, None, :]).reshape(len(actions), -1)
        blocks, groups = self._blocks(own), []
        for rewards in (np.array(self._seen.next)[own], np.array(self._seen.rest)[own]):
            kept = ~np.isnan(rewards)
            if not kept.any():
                continue
            of = is_first[kept], rewards[kept], blocks[kept]
            groups += [by_feature(beside[kept], *of), by_feature(jointly[kept], *of)]
            groups.append(np.hstack([by_feature(beside[kept] * one[kept, None], *of) for one in actions.T]))
        follow = np.array(self._seen.follow, np.int64)[own]
        place = np.full(len(self._seen.seats), -1)
        place[own] = np.arange(own.size)
        kept = follow >= 0
        if kept.any():
            moved = views[place[follow[kept]]] - views[kept]
            groups.append(
                np.hstack([by_feature(actions[kept], is_first[kept], change, blocks[kept]) for change in moved.T])
            )
        return exchange_is_seen(groups, error_rate=self._error_rate)

    def _blocks(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        return blocks_of(np.array(self._seen.games, np.int64)[own])

    def _features(
        self, turn: Turn, actions: NDArray[np.generic]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Views and actions of the slots as numbers, [K, F] each; None where no two seats always see the same."""
        if not self._has_features or all(seen is None for seen in self._equal_views.values()):
            return None
        views = [np.asarray(array, np.float64).reshape(turn.env_index.size, -1) for array in turn.obs.values()]
        return np.concatenate(views, axis=1), action_features(actions, self._spec.actions)

    def _earn(self, game: int, seat: int, reward: float) -> None:
        last = int(self._last[game, seat])
        if last >= 0:
            self._seen.next[last] = reward
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


def effect_of_seat(
    cells: NDArray[np.int64], is_first: NDArray[np.bool_], rewards: NDArray[np.float64]
) -> tuple[float, float]:
    """(share of decisions in cells that both seats had often enough, share of their variance that the seat explains).

    Args:
      cells: int64 [D], which view and actions. is_first: bool [D], of the first of two seats. rewards: float64 [D].
    """
    if not cells.size:
        return 0.0, 0.0
    cell = np.unique(cells, return_inverse=True)[1].reshape(-1)
    sides = [(cell[mine], rewards[mine] - rewards.mean()) for mine in (is_first, ~is_first)]
    numbers, sums, squares = (
        np.stack([np.bincount(of_cell, values**power, cell.max() + 1) for of_cell, values in sides])
        for power in range(3)
    )
    both = numbers.min(axis=0) >= MIN_DECISIONS
    if not both.any():
        return 0.0, 0.0
    numbers, sums, squares = numbers[:, both], sums[:, both], squares[:, both]
    share, total = numbers.sum() / cells.size, squares.sum() - sums.sum() ** 2 / numbers.sum()
    if total <= 0.0:
        return float(share), 0.0
    means = sums / numbers
    spreads = np.maximum(squares - numbers * means**2, 0.0) / (numbers - 1.0)
    distances, errors = (means[0] - means[1]) ** 2, (spreads / numbers).sum(axis=0)
    weights = numbers.prod(axis=0) / numbers.sum(axis=0)
    return float(share), float((weights * (distances - errors)).sum() / total)


def action_features(actions: NDArray[np.generic], spec: ActionSpec) -> NDArray[np.float64]:
    """[K, F] numbers of actions [K, ...]: marks of the choice or a group of choices; else the first numbers."""
    if spec.kind == "categorical":
        num = min(spec.num_actions, MAX_FEATURES)
        marked: NDArray[np.float64] = np.eye(num)[np.asarray(actions, np.int64) * num // spec.num_actions]
        return marked
    return np.asarray(actions, np.float64).reshape(len(actions), -1)[:, :MAX_FEATURES]


def _coarse(actions: NDArray[np.generic]) -> list[bytes]:
    """[K] actions as keys; of a box the signs alone, for its numbers never come again."""
    kept = actions > np.zeros(1, actions.dtype) if actions.dtype.kind == "f" else actions
    return [one.tobytes() for one in np.ascontiguousarray(kept)]
