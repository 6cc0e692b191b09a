"""The pair that should play next: the one that most lowers the summed variance of the ratings per second of play.

A batch of m games between i and j adds w (e_i - e_j)(e_i - e_j)' to the information, w = m E[p (1 - p)] / phi. By
Sherman and Morrison the covariance C then loses w c c' / (1 + w (c_i - c_j)), where c = C (e_i - e_j). The summed
variance of the rated policies falls by

    gain = w |c|^2 / (1 + w (C_ii + C_jj - 2 C_ij)), over the rated policies in c.

Open leases count as played: their expected information is in C. This is A-optimal design, one batch at a time.

Shape letter: N policies.

Source: Chaloner and Verdinelli 1995, Bayesian experimental design, section 2.2; MacKay 1992 for the expected p (1 - p)
under an uncertain difference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import win_probability
from league.judge.pools.core.fit import Fit
from league.judge.pools.core.records import MAX_BATCH_GAMES, OUTSIDE, BatchLease, PoolTestAccount
from league.judge.pools.core.state import PoolState

Array = NDArray[np.float64]

TARGET_SECONDS = 10.0
"""Time that a batch should take: long against its messages and commits, short against the patience of a reader."""
FIRST_GROUPS = 4
"""Groups of a batch of policies whose games have never been timed."""
MAX_GROUPS = 64
OVERHEAD_SECONDS = 0.05
"""Of a batch, beside its games."""
UNKNOWN_SECONDS = 0.02
"""Of a game that was never timed."""
MIN_DURATION_S, DURATION_FACTOR = 120.0, 20.0
"""Patience with a lease: at least so long, and so many times what it should take."""
OUTSIDE_DURATION_S = 3600.0
"""The least for an engine or a served policy: it may take seconds for a move."""
RATINGS_TURN = 4
"""One of so many leases is for the ratings even while tests are open."""
NEVER = -1.0
"""Rate of a pair that does not meet; all others gain something, if little."""
SURPRISING = 64
"""Most uncertain policies that are looked at where the covariance is not known."""


@dataclass(frozen=True)
class NextBatch:
    """The batch that should be played next.

    Fields:
      home, away: indices of the policies. games: their number. gain: fall of the summed variance, in logits squared.
      duration_s: patience with it.
    """

    home: int
    away: int
    games: int
    gain: float
    duration_s: float


def expected_information(difference: Array, variance: Array) -> Array:
    """E[p (1 - p)] of a game whose difference in logits is normal: the slope of the moderated win probability.

    Source: MacKay 1992, the evidence framework applied to classification networks, equation 10.
    """
    kappa = 1.0 / np.sqrt(1.0 + math.pi * variance / 8.0)
    found: Array = kappa * win_probability(kappa * difference) * win_probability(-kappa * difference)
    return found


def next_test(
    state: PoolState, *, without: Collection[int] = (), apart: Collection[tuple[int, int]] = ()
) -> PoolTestAccount | None:
    """The open test that should be played next; None for none, and for every fourth lease, which is the ratings'.

    The one with the fewest leases in hand, the oldest of these. Args: as of `Scheduler.next_batch`.
    """
    if state.next_lease_id % RATINGS_TURN == 0:
        return None
    hands = Counter(lease.test for lease in state.leases.values())
    fit = [
        account
        for account in state.open_tests
        if (pair := (account.test.first, account.test.second)) not in apart
        and pair[::-1] not in apart
        and not set(pair) & set(without)
    ]
    return min(fit, key=lambda account: (hands[account.test.number], account.test.number), default=None)


class Scheduler:
    """Chooses batches after one fit, and keeps account of what is being played.

    Args:
      state: the pool. fit: its ratings; policies that joined later are not chosen before the next fit.
    """

    def __init__(self, state: PoolState, fit: Fit) -> None:
        assert state.game is not None
        self._state = state
        self._fit = fit
        self._size = len(fit.ratings)
        self._teams = state.game.teams
        self._rated = np.flatnonzero([policy.elo is None for policy in state.policies[: self._size]])
        self._counted: set[int] = set()
        if fit.covariance is None:
            self._variance = fit.deviations**2
            return
        inner = fit.covariance
        self._covariance = inner.copy()
        self._squared = inner[:, self._rated] @ inner[self._rated]
        variance = np.diag(inner)
        spread = np.maximum(variance[:, None] + variance[None, :] - 2.0 * inner, 0.0)
        self._information = expected_information(fit.ratings[:, None] - fit.ratings[None, :], spread)
        self._information /= fit.dispersion

    def next_batch(
        self,
        leases: Mapping[int, BatchLease],
        *,
        without: Collection[int] = (),
        apart: Collection[tuple[int, int]] = (),
    ) -> NextBatch | None:
        """The batch to play beside the open leases; None where there are no two policies to play.

        Args:
          without: indices of policies that the worker cannot play. apart: pairs of them that do not meet.
        """
        for lease in leases.values():
            self._count(lease)
        playable = [index for index in range(self._size) if self._state.is_playable(index) and index not in without]
        if len(playable) < 2 or not len(self._rated):
            return None
        chosen = np.array(playable)
        if self._fit.covariance is None:
            return self._roughly(chosen, apart)
        games = self._games(chosen[:, None], chosen[None, :])
        block = np.ix_(chosen, chosen)
        weight = games * self._information[block]
        covariance, squared = self._covariance[block], self._squared[block]
        own, own_squared = np.diag(covariance), np.diag(squared)
        norm = own_squared[:, None] + own_squared[None, :] - 2.0 * squared
        distance = own[:, None] + own[None, :] - 2.0 * covariance
        gain = weight * norm / (1.0 + weight * distance)
        rate = gain / (OVERHEAD_SECONDS + games * self._seconds(chosen[:, None], chosen[None, :]))
        return self._best(rate, gain, chosen, chosen, apart)

    def batch_of(self, home: int, away: int) -> NextBatch | None:
        """The batch of two given policies; None before a fit knows both, or where one is not to be played."""
        if max(home, away) >= self._size or not all(map(self._state.is_playable, (home, away))):
            return None
        return self._batch(home, away, 0.0)

    def _count(self, lease: BatchLease) -> None:
        """Take the expected information of an open lease as had."""
        if lease.lease_id in self._counted or max(lease.home, lease.away) >= self._size:
            return
        self._counted.add(lease.lease_id)
        i, j = lease.home, lease.away
        if self._fit.covariance is None:
            weight = lease.games * float(self._rough_information(np.array(i), np.array(j)))
            for index in (i, j):
                self._variance[index] /= 1.0 + weight * self._variance[index]
            return
        weight = lease.games * float(self._information[i, j])
        change = self._covariance[:, i] - self._covariance[:, j]
        factor = weight / (1.0 + weight * max(float(change[i] - change[j]), 0.0))
        crossed = self._squared[:, i] - self._squared[:, j]
        length = float((change[self._rated] ** 2).sum())
        self._covariance -= factor * np.outer(change, change)
        both = np.outer(crossed, change)
        self._squared -= factor * (both + both.T)
        self._squared += factor**2 * length * np.outer(change, change)

    def _rough_information(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
        difference = self._fit.ratings[first] - self._fit.ratings[second]
        variance = self._fit.deviations[first] ** 2 + self._fit.deviations[second] ** 2
        return expected_information(difference, variance) / self._fit.dispersion

    def _roughly(self, chosen: NDArray[np.int64], apart: Collection[tuple[int, int]]) -> NextBatch | None:
        """The most uncertain policies against all others, as if no two ratings hung together."""
        subjects = chosen[np.argsort(-self._variance[chosen], kind="stable")[:SURPRISING]]
        games = self._games(subjects[:, None], chosen[None, :])
        weight = games * self._rough_information(subjects[:, None], chosen[None, :])
        one, other = self._variance[subjects][:, None], self._variance[chosen][None, :]
        gain = weight * (one**2 + other**2) / (1.0 + weight * (one + other))
        rate = gain / (OVERHEAD_SECONDS + games * self._seconds(subjects[:, None], chosen[None, :]))
        return self._best(rate, gain, subjects, chosen, apart)

    def _best(
        self,
        rate: Array,
        gain: Array,
        homes: NDArray[np.int64],
        aways: NDArray[np.int64],
        apart: Collection[tuple[int, int]],
    ) -> NextBatch | None:
        """The pair of the highest rate [homes, aways] among those who may meet."""
        rate[homes[:, None] == aways[None, :]] = NEVER
        for one, other in apart:
            rate[np.ix_(homes == one, aways == other)] = NEVER
            rate[np.ix_(homes == other, aways == one)] = NEVER
        home, away = divmod(int(rate.argmax()), len(aways))
        if rate[home, away] == NEVER:
            return None
        return self._batch(int(homes[home]), int(aways[away]), float(gain[home, away]))

    def _seconds(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
        """Seconds of a game."""
        seconds = self._state.seconds.values
        found: Array = np.where(
            seconds[first] + seconds[second] > 0.0, seconds[first] + seconds[second], UNKNOWN_SECONDS
        )
        return found

    def _games(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
        """Games of a batch: what `TARGET_SECONDS` hold, in whole groups."""
        timed = self._state.seconds.values[first] + self._state.seconds.values[second]
        with np.errstate(divide="ignore"):
            groups = np.where(timed > 0.0, TARGET_SECONDS / (timed * self._teams), FIRST_GROUPS)
        most = min(MAX_GROUPS, MAX_BATCH_GAMES // self._teams)
        found: Array = np.clip(np.floor(groups), 1, most) * self._teams
        return found

    def _batch(self, home: int, away: int, gain: float) -> NextBatch:
        pair = np.array(home), np.array(away)
        games = int(self._games(*pair))
        is_outside = any(self._state.policies[index].kind == OUTSIDE for index in (home, away))
        least = OUTSIDE_DURATION_S if is_outside else MIN_DURATION_S
        patience = max(least, DURATION_FACTOR * games * float(self._seconds(*pair)))
        return NextBatch(home, away, games, gain, patience)
