"""A batch over which a worker process died is taken back at once; a pair that kills workers does not meet again."""

from __future__ import annotations

import numpy as np
import pytest

from league.judge.pools.core.fit import fit_pool, games_of
from league.judge.pools.core.schedule import Scheduler
from league.judge.pools.folder import PoolFolder
from league.judge.pools.pool import MAX_PAIR_DEATHS, Pool, open_pool
from tests.league.judge.pools.test_ratings import some_pool

WHO = "here:17"


def pair_of(pool: Pool) -> tuple[int, int] | None:
    """The pair of the next batch that the worker is granted, None where there is none."""
    granted = pool.lease(WHO)
    return None if granted is None else (granted.lease.home, granted.lease.away)


def test_a_dead_workers_batch_is_taken_back_at_once_and_nobody_is_blamed(pool_folder: PoolFolder) -> None:
    with open_pool(pool_folder) as pool:
        assert pair_of(pool) is not None
        other = pool.lease("there:17")
        pool.worker_died("nobody:1", "SIGKILL")
        assert len(pool.state.leases) == 2
        pool.worker_died(WHO, "SIGKILL")
        assert other is not None and list(pool.state.leases) == [other.lease.lease_id]
        assert (pool.state.expired, pool.state.failed) == (1, 0)
        assert not pool.state.failures.values.any()


def test_a_pair_that_kills_workers_does_not_meet_again_while_the_pool_is_open(pool_folder: PoolFolder) -> None:
    said: list[str] = []
    deaths: dict[frozenset[int], int] = {}
    with open_pool(pool_folder, say=said.append) as pool:
        while (pair := pair_of(pool)) is not None:
            deaths[frozenset(pair)] = deaths.get(frozenset(pair), 0) + 1
            pool.worker_died(WHO, "SIGSEGV")
            assert sum(deaths.values()) <= 3 * MAX_PAIR_DEATHS
        assert set(deaths.values()) == {MAX_PAIR_DEATHS} and len(deaths) == 3
        assert said[0].endswith(f"do not meet any more: {MAX_PAIR_DEATHS} worker processes died over them.")
        assert len(said) == 3
    with open_pool(pool_folder) as pool:
        assert pair_of(pool) is not None


@pytest.mark.parametrize("is_known", [True, False])
def test_pairs_that_do_not_meet_leave_the_others_to_the_scheduler(is_known: bool) -> None:
    state = some_pool()
    fit = fit_pool(games_of(state))
    if not is_known:
        fit = type(fit)(**{**vars(fit), "covariance": None})
    best = Scheduler(state, fit).next_batch({})
    assert best is not None
    apart = {(best.away, best.home)}
    for _ in range(5):
        batch = Scheduler(state, fit).next_batch({}, apart=apart)
        assert batch is not None
        met = (batch.home, batch.away)
        assert met not in apart and met[::-1] not in apart
        apart.add(met)
    every = {(one, other) for one in range(len(fit.ratings)) for other in range(one)}
    assert Scheduler(state, fit).next_batch({}, apart=every) is None
    assert np.isfinite(best.gain)
