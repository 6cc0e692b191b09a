"""Exact exploitability of phantom games at the size of papers: millions of information states, billions of histories.

Policies are asked in batches of information states, which are one row of an array each. The largest arrays of 3 x 3
boards together take 0.7 GB, and 2.5 GB in the abrupt variants.

Shape letters: C cells, T tries, K information states, M policies, Q numbers of a plan (`PhantomForm`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.games.phantom import PhantomRules
from league.policies.exact.behaviours import (
    ROWS_AT_ONCE,
    Array,
    Mixture,
    PolicyFunction,
    RecurrentFunction,
    checked,
    weighed,
)
from league.policies.exact.phantom_form import BOTH, PhantomForm, Share, Tables, quiet
from league.policies.exact.phantom_rows import Pattern, untried

MAX_CELLS = 9
"""Largest board: one more cell takes ten times the memory."""

MAX_ROWS = 4_000_000
"""Most rows of a plan, 32 MB for each seat: more members of a mixture than a few have to fit."""

Asked = Callable[[int], None]
"""Takes a number of records of which a policy has been asked."""

LINK_S = 5e-8
"""Processor seconds of a pass for each link of a row and a record, roughly."""


@dataclass(frozen=True)
class PhantomGame:
    """A phantom game whose every history is known.

    Fields:
      rules: of the game. form: its rows. deals: None, as nothing of it is drawn.
    """

    rules: PhantomRules
    form: PhantomForm
    deals: None = None

    @property
    def num_states(self) -> int:
        """Information states of both seats."""
        return sum(int(self.form.is_reached(seat, one).sum()) for seat in BOTH for one in self.form.decisions[seat])

    @property
    def pass_s(self) -> float:
        """Processor seconds of one NashConv, roughly, without those of the policy."""
        return LINK_S * self.form.num_links

    @property
    def has_plans(self) -> bool:
        """True where plans are small enough to be held for many policies."""
        return self.form.num_rows <= MAX_ROWS

    def plans(self, policies: Sequence[PolicyFunction]) -> Array:
        """[M, Q], the plans of policies."""
        reaches = [[self._reach(seat, policy) for seat in BOTH] for policy in policies]
        return np.stack([np.concatenate([self.form.plan(seat, own[seat]) for seat in BOTH]) for own in reaches])

    def nash_conv(self, policy: PolicyFunction | Mixture, share: Share = quiet) -> float:
        """NashConv in the rewards of the game, when both seats are played by `policy`.

        Args:
          share: takes the part that is done; the half of it is asking the policy.
        """
        weights, members = weighed(policy)
        records = [sum(len(self.form.tries[len(one)]) for one in self.form.decisions[seat]) for seat in BOTH]
        total, done = len(members) * max(sum(records), 1), 0

        def asked(count: int) -> None:
            nonlocal done
            done += count
            share(0.5 * done / total)

        first, second = (self._mixed(seat, weights, members, asked) for seat in BOTH)
        return self.form.nash_conv_of(first, second, lambda part: share(0.5 + 0.5 * part))

    def _mixed(self, seat: int, weights: Array, members: Sequence[PolicyFunction], asked: Asked) -> Tables:
        if len(members) == 1:
            return self._reach(seat, members[0], asked)
        mixed: Tables = {}
        for weight, member in zip(weights.tolist(), members, strict=True):
            for pattern, reached in self._reach(seat, member, asked).items():
                mixed[pattern] = mixed.get(pattern, 0.0) + weight * reached
        return mixed

    def _reach(self, seat: int, policy: PolicyFunction, asked: Asked = lambda count: None) -> Tables:
        return self.form.reach(seat, _Decisions(self, seat, policy, asked).decide)


class _Decisions:
    """The decisions of one policy in all information states of one seat, asked once in each.

    Args:
      game: in which. policy: with or without a memory, which is that after the decision before.
      asked: takes the number of records that are done.
    """

    def __init__(self, game: PhantomGame, seat: int, policy: PolicyFunction, asked: Asked) -> None:
        self._game, self._seat, self._policy, self._asked = game, seat, policy, asked
        self._memories: dict[Pattern, NDArray[np.float32]] = {}  # of the pattern before, and those before it

    def decide(self, pattern: Pattern, reached: Array) -> Array:
        """See `Decide`; zeros where no game gets to."""
        cells, tries = self._game.rules.num_cells, self._game.form.tries[len(pattern)]
        left = cells - len(pattern)
        rows = np.flatnonzero(self._game.form.is_reached(self._seat, pattern) & (reached > 0.0))
        decided, memory = np.zeros((len(tries), left)), self._memory_of(pattern)
        for begin in range(0, rows.size, ROWS_AT_ONCE):
            part = rows[begin : begin + ROWS_AT_ONCE]
            fields, legal = self._game.rules.shown(self._seat, tries[part], np.array(pattern, np.bool_))
            if isinstance(self._policy, RecurrentFunction):
                answer, memory[part] = self._policy.after(fields, legal, self._before(pattern, part))
            else:
                answer = self._policy(fields, legal)
            decided[part] = checked(answer, legal)[untried(tries[part], cells)].reshape(-1, left)
        self._asked(len(tries))
        return decided

    def _memory_of(self, pattern: Pattern) -> NDArray[np.float32]:
        """Room for the memories after the decisions of a pattern; only those that lead to it are kept beside."""
        size = self._policy.core_size if isinstance(self._policy, RecurrentFunction) else 0
        self._memories = {before: kept for before, kept in self._memories.items() if pattern[: len(before)] == before}
        self._memories[pattern] = np.zeros((len(self._game.form.tries[len(pattern)]), size), np.float32)
        return self._memories[pattern]

    def _before(self, pattern: Pattern, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """[K, core], the memories with which the decisions of these rows begin."""
        size = self._memories[pattern].shape[1]
        if not pattern:
            return np.zeros((rows.size, size), np.float32)
        branches = self._game.rules.num_cells - len(pattern) + 1
        return self._memories[pattern[:-1]][rows // branches]
