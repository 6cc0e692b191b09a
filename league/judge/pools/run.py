"""Works on a pool in this process: batches of games one after another, until a time is over or a signal asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from league.envs.protocol import EnvError
from league.errors import LeagueError
from league.judge.matches.game_batch import OutOfTime
from league.judge.pools.play import env_of, play_lease, seed_of
from league.judge.pools.policies import NotHere, ReadyPolicies
from league.judge.pools.pool import GrantedBatch, Pool

IDLE_S = 0.5
"""Pause where there is nothing to play."""


def run_here(
    pool: Pool,
    *,
    still: Callable[[], bool],
    source: Path,
    idle: Callable[[float], object] = time.sleep,
    progress: Callable[[int], object] = lambda games: None,
) -> int:
    """Play batches while `still` says yes; returns the games counted. A batch in hand is given up at the end.

    Args:
      source: the pool's folder. idle: waits so many seconds. progress: called with the games counted so far.
    """
    ready = ReadyPolicies(env_of(pool.game), pool.spec, pool.store.get, pool=source)
    games = 0
    while still():
        granted = pool.lease("this process")
        if granted is None:
            idle(IDLE_S)
            continue
        games += _play(pool, granted, ready, still)
        progress(games)
    return games


def _play(pool: Pool, granted: GrantedBatch, ready: ReadyPolicies, still: Callable[[], bool]) -> int:
    lease = granted.lease
    try:
        with ExitStack() as opened:
            pair = enumerate((granted.home, granted.away))
            policies = [opened.enter_context(ready.open(one, seed=seed_of(lease) + place)) for place, one in pair]
            result = play_lease(pool.game, lease, policies, still=still)
    except OutOfTime:
        pool.give_up(lease.lease_id, lease.token, "the pool was stopped")
        return 0
    except NotHere as error:
        pool.lack(lease.lease_id, lease.token, error.name, str(error))
        return 0
    except (LeagueError, EnvError) as error:
        pool.fail(lease.lease_id, lease.token, str(error))
        return 0
    pool.finish(lease.lease_id, lease.token, result)
    return lease.games
