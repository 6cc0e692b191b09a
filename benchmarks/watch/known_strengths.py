"""Games between policies of known strength, drawn instead of played: to hold ratings against what they should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import ELO_PER_LOGIT, win_probability
from league.judge.pools.core.events import BatchFinished, BatchGranted, PolicyAdded, PoolCreated
from league.judge.pools.core.fit import Fit, fit_pool, games_of
from league.judge.pools.core.records import BOT, BatchLease, BatchResult, PoolGame, PoolPolicy
from league.judge.pools.core.schedule import Scheduler
from league.judge.pools.core.state import PoolState, apply

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KnownGame:
    """A game of two teams whose results follow from strengths in Elo.

    Fields:
      draws: part of the games of equals that end in a draw; of others it is this times 4 p (1 - p).
      opening: largest part of the way to a certain result that an opening adds to one side. The other side has it in
        the next game, so that the mean score of the two stays the one that the strengths give.
    """

    draws: float = 0.0
    opening: float = 0.0

    def play(self, difference: float, games: int, rng: np.random.Generator) -> BatchResult:
        """Draw a batch of paired games. difference: in Elo, of home over away."""
        groups = games // 2
        even_score = win_probability(np.full(groups, difference / ELO_PER_LOGIT))
        favour = rng.uniform(-self.opening, self.opening, groups) * np.minimum(even_score, 1.0 - even_score)
        points = np.zeros(groups)
        wins = draws = 0
        for sign in (1.0, -1.0):
            expected = even_score + sign * favour
            drawn = np.minimum(
                4.0 * self.draws * expected * (1.0 - expected), 2.0 * np.minimum(expected, 1.0 - expected)
            )
            chance = rng.random(groups)
            won, even = chance < expected - drawn / 2.0, chance >= 1.0 - drawn
            wins, draws = wins + int(won.sum()), draws + int(even.sum())
            points += won + even / 2.0
        return BatchResult(wins, draws, games - wins - draws, float(((points / 2.0) ** 2).sum()), 0.0)


def known_pool(strengths: Array, anchors: Mapping[int, float]) -> PoolState:
    """A pool of a policy for each strength, without games. anchors: index -> its Elo."""
    state = apply(PoolState(), PoolCreated(PoolGame("known", 2)))
    for index in range(len(strengths)):
        apply(state, PolicyAdded(PoolPolicy(f"p{index}", BOT, elo=anchors.get(index))))
    return state


def play_known(
    state: PoolState,
    strengths: Array,
    game: KnownGame,
    rng: np.random.Generator,
    *,
    batches: int,
    workers: int = 4,
    fit_every: int = 8,
) -> Fit:
    """Schedule and draw batches, so many at once; returns the last fit."""
    fit = fit_pool(games_of(state))
    scheduler = Scheduler(state, fit)
    for number in range(batches):
        if number % fit_every == 0 and number:
            fit = fit_pool(games_of(state), start=fit)
            scheduler = Scheduler(state, fit)
        while len(state.leases) < workers:
            batch = scheduler.next_batch(state.leases)
            assert batch is not None
            lease = BatchLease(state.next_lease_id, "", "", batch.home, batch.away, batch.games, batch.duration_s)
            apply(state, BatchGranted(lease))
        lease = state.leases[int(rng.choice(list(state.leases)))]
        result = game.play(float(strengths[lease.home] - strengths[lease.away]), lease.games, rng)
        apply(state, BatchFinished(lease.lease_id, "", result))
    return fit_pool(games_of(state))
