"""Ratings and scheduling of a pool, against slow transcriptions of their definitions and against known strengths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.watch.known_strengths import KnownGame, known_pool, play_known
from league.core.metagame.ratings import ELO_PER_LOGIT
from league.judge.pools.core.events import BatchFinished, BatchGranted
from league.judge.pools.core.fit import MEAN_PRECISION, Fit, PoolGames, fit_pool, games_of
from league.judge.pools.core.records import BatchLease, BatchResult
from league.judge.pools.core.schedule import OVERHEAD_SECONDS, Scheduler, expected_information
from league.judge.pools.core.state import PoolState, apply


def played(state: PoolState, home: int, away: int, result: BatchResult) -> None:
    lease = BatchLease(state.next_lease_id, "", "", home, away, result.games, 1.0)
    apply(state, BatchGranted(lease))
    apply(state, BatchFinished(lease.lease_id, "", result))


def some_pool(seed: int = 0, policies: int = 7, batches: int = 25) -> PoolState:
    rng = np.random.default_rng(seed)
    strengths = np.concatenate([[0.0, 500.0], rng.uniform(-100, 900, policies - 2)])
    state = known_pool(strengths, {0: 0.0, 1: 500.0})
    game = KnownGame(draws=0.3, opening=0.5)
    for _ in range(batches):
        home, away = rng.choice(policies, 2, replace=False)
        result = game.play(float(strengths[home] - strengths[away]), 8, rng)
        played(state, int(home), int(away), replace(result, seconds=float(rng.uniform(0.1, 3.0))))
    return state


def log_posterior(games: PoolGames, ratings: np.ndarray, mean: float, fit: Fit) -> float:
    """Term by term, as the module's text has it."""
    total = 0.0
    for pair in range(len(games.first)):
        d = ratings[games.first[pair]] - ratings[games.second[pair]]
        p = 1.0 / (1.0 + np.exp(-d))
        total += games.score[pair] * np.log(p) + (games.games[pair] - games.score[pair]) * np.log(1.0 - p)
    total /= fit.dispersion
    for index, anchor in enumerate(games.anchors):
        if np.isnan(anchor):
            total -= (ratings[index] - mean) ** 2 / (2.0 * fit.spread**2)
    return total - (mean - np.nanmean(games.anchors)) ** 2 * MEAN_PRECISION / 2.0


def test_ratings_are_the_top_of_the_posterior_and_deviations_its_curvature() -> None:
    games = games_of(some_pool())
    fit = fit_pool(games)
    free = np.flatnonzero(np.isnan(games.anchors))

    def value(x: np.ndarray) -> float:
        ratings = fit.ratings.copy()
        ratings[free] = x[:-1]
        return log_posterior(games, ratings, float(x[-1]), fit)

    top, h = np.append(fit.ratings[free], fit.mean), 1e-4
    axes = np.eye(len(top)) * h
    slope = [(value(top + e) - value(top - e)) / (2 * h) for e in axes]
    assert np.abs(slope).max() < 1e-4
    hessian = np.array(
        [
            [(value(top + a + b) - value(top + a - b) - value(top - a + b) + value(top - a - b)) for b in axes]
            for a in axes
        ]
    ) / (4 * h * h)
    deviations = np.sqrt(np.diag(np.linalg.inv(-hessian)))[:-1]
    np.testing.assert_allclose(fit.deviations[free], deviations, rtol=1e-3)
    assert fit.ratings[:2] * ELO_PER_LOGIT == pytest.approx([0.0, 500.0])
    assert not fit.deviations[:2].any()


def test_thousands_are_rated_as_a_few_are() -> None:
    games = games_of(some_pool(policies=40, batches=300))
    exact, sparse = fit_pool(games), fit_pool(games, max_dense=10)
    np.testing.assert_allclose(sparse.ratings, exact.ratings, atol=0.1)
    np.testing.assert_allclose(sparse.deviations, exact.deviations, rtol=0.4)


def test_draws_narrow_the_intervals_by_as_much_as_they_lower_the_variance() -> None:
    rng = np.random.default_rng(3)
    found = []
    for draws in (0.0, 0.4):
        state = known_pool(np.zeros(6), {0: 0.0})
        for home in range(6):
            for away in range(home):
                played(state, home, away, KnownGame(draws=draws).play(0.0, 400, rng))
        found.append(fit_pool(games_of(state)).dispersion)
    assert found[0] == pytest.approx(1.0, abs=0.08)
    assert found[1] == pytest.approx(0.6, abs=0.08)


def test_totals_do_not_depend_on_the_side_they_are_seen_from() -> None:
    result = BatchResult(wins=5, draws=2, losses=1, squares=2.75, seconds=4.0)
    other = BatchResult(wins=1, draws=2, losses=5, squares=4 - 2 * 6.0 / 2 + 2.75, seconds=4.0)
    one, two = known_pool(np.zeros(3), {}), known_pool(np.zeros(3), {})
    played(one, 1, 2, result)
    played(two, 2, 1, other)
    np.testing.assert_allclose(one.totals.values, two.totals.values)
    assert one.seconds.values.tolist() == [0.0, 0.25, 0.25]


def best_by_refitting(state: PoolState, fit: Fit, leases: list[BatchLease]) -> tuple[int, int]:
    """Tries every pair: adds its information to the whole matrix, inverts it, and takes the trace."""
    assert fit.covariance is not None
    free = np.flatnonzero(fit.deviations > 0)
    inverse = np.linalg.inv(fit.covariance[np.ix_(free, free)])
    scheduler = Scheduler(state, fit)

    def information(i: int, j: int, games: int) -> np.ndarray:
        u = np.zeros(len(fit.ratings))
        u[i], u[j] = 1.0, -1.0
        spread = u @ fit.covariance @ u
        weight = games * expected_information(fit.ratings[i] - fit.ratings[j], spread) / fit.dispersion
        return weight * np.outer(u, u)[np.ix_(free, free)]

    for lease in leases:
        inverse = inverse + information(lease.home, lease.away, lease.games)
    before = np.trace(np.linalg.inv(inverse))
    best, chosen = -1.0, (0, 0)
    for j in range(len(fit.ratings)):
        for i in range(j):
            games = int(scheduler._games(np.array(i), np.array(j)))
            gain = before - np.trace(np.linalg.inv(inverse + information(i, j, games)))
            rate = gain / (OVERHEAD_SECONDS + games * float(scheduler._seconds(np.array(i), np.array(j))))
            if rate > best:
                best, chosen = rate, (i, j)
    return chosen


@pytest.mark.parametrize("seed", range(4))
def test_the_next_pair_is_the_one_that_lowers_the_summed_variance_most_per_second(seed: int) -> None:
    state = some_pool(seed)
    fit = fit_pool(games_of(state))
    leases: list[BatchLease] = []
    scheduler = Scheduler(state, fit)
    for _ in range(3):
        batch = scheduler.next_batch(state.leases)
        assert batch is not None
        assert {batch.home, batch.away} == {*best_by_refitting(state, fit, leases)}
        lease = BatchLease(state.next_lease_id, "", "", batch.home, batch.away, batch.games, 1.0)
        apply(state, BatchGranted(lease))
        leases.append(lease)


def test_a_policy_without_games_is_played_first_and_a_failing_one_not_at_all() -> None:
    state = some_pool()
    apply(state, known_pool_event("new"))
    batch = Scheduler(state, fit_pool(games_of(state))).next_batch({})
    assert batch is not None and 7 in (batch.home, batch.away)
    state.failures.values[7] = 3
    batch = Scheduler(state, fit_pool(games_of(state))).next_batch({})
    assert batch is not None and 7 not in (batch.home, batch.away)


def known_pool_event(name: str):  # type: ignore[no-untyped-def]
    from league.judge.pools.core.events import PolicyAdded
    from league.judge.pools.core.records import BOT, PoolPolicy

    return PolicyAdded(PoolPolicy(name, BOT))


def test_intervals_hold_known_strengths_as_often_as_they_say() -> None:
    """Null: each interval holds its strength with 95 %; 12 pools of 11 policies, fixed seeds, bound at 4 deviations."""
    inside = []
    for seed in range(12):
        rng = np.random.default_rng([5, seed])
        strengths = np.concatenate([[0.0], rng.uniform(-200, 1000, 11)])
        state = known_pool(strengths, {0: 0.0})
        fit = play_known(state, strengths, KnownGame(draws=0.3), rng, batches=80)
        _, low, high = fit.elo()
        inside.append(((low <= strengths) & (strengths <= high))[1:].mean())
    assert abs(np.mean(inside) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / (12 * 11)) + 0.01


@pytest.mark.parametrize("games", [10, 40])
@pytest.mark.parametrize("spread", [300.0, 1000.0])
def test_intervals_hold_strengths_that_lie_far_apart_too(spread: float, games: int) -> None:
    """20 pools of 11 policies around an anchor, half of whose pairs have met. A learnt spread of 770 held 0.83."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(20):
        truth = np.concatenate([[0.0], rng.normal(0.0, spread, 11)]) / ELO_PER_LOGIT
        first, second = np.triu_indices(12, 1)
        met = (rng.random(len(first)) < 0.5) | (np.arange(len(first)) < 3)
        first, second = first[met], second[met]
        chances = 1.0 / (1.0 + np.exp(truth[second] - truth[first]))
        means = rng.binomial(2, chances[:, None], (len(first), games // 2)) / 2.0
        anchors, played = np.r_[0.0, np.full(11, np.nan)], np.full(len(first), float(games))
        fit = fit_pool(PoolGames(anchors, first, second, played, 2.0 * means.sum(1), (means**2).sum(1), 2))
        inside.append((np.abs(fit.ratings - truth) <= 1.96 * fit.deviations)[1:].mean())
    assert np.mean(inside) >= 0.88
