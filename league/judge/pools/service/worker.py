"""A worker: joins a pool, plays the batches that it is given, and sends each result until it is acknowledged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack

from league.config.plugin_names import outside_names
from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.matches.game_batch import OutOfTime
from league.judge.pools.core.records import PoolGame
from league.judge.pools.play import env_of, play_lease, seed_of
from league.judge.pools.policies import NotHere, ReadyPolicies
from league.judge.pools.pool import GrantedBatch
from league.judge.pools.service.client import AnswerRefused, PoolClient, PoolServiceError
from league.policies.trust import is_trusted, names_of_manifest, require_trusted
from league.store.snapshots import SnapshotManifest

IDLE_S = 1.0
"""Pause where there is nothing to play."""


def work(
    client: PoolClient,
    *,
    still: Callable[[], bool],
    idle: Callable[[float], object],
    progress: Callable[[int], object] = lambda games: None,
) -> int:
    """Play batches while `still` says yes; returns the games that were counted.

    Args:
      idle: waits so many seconds. progress: given the games so far.
    Raises:
      PoolServiceError: no pool answers, or it does not take this worker. Untrusted: it names code from outside.
    """
    game = _joined(client, still)
    if game is None:
        return 0
    trusted = is_trusted(client.url)
    if not trusted:
        require_trusted(outside_names({"env": {"id": game.env_id, "kwargs": game.options}}), what="the pool")
    spec = spec_of(dataclasses.replace(env_of(game), workers=0))

    def weights(digest: str) -> tuple[bytes, SnapshotManifest]:
        found, manifest = client.weights(digest)
        if not trusted:
            require_trusted([name for name in names_of_manifest(manifest) if name.kind != "env"], what="the pool")
        return found, manifest

    ready = ReadyPolicies(env_of(game), spec, weights, pool=client.url)
    games = 0
    while still():
        try:
            granted = client.lease()
            if granted is None:
                idle(IDLE_S)
                continue
            games += _play(client, game, granted, ready, still)
        except PoolServiceError:
            if still():
                raise
        progress(games)
    return games


def _joined(client: PoolClient, still: Callable[[], bool]) -> PoolGame | None:
    """The game of the pool; None where the worker was stopped before it answered."""
    try:
        return client.hello()
    except PoolServiceError:
        if still():
            raise
        return None


def _play(
    client: PoolClient, game: PoolGame, granted: GrantedBatch, ready: ReadyPolicies, still: Callable[[], bool]
) -> int:
    """Play one batch; returns its games if they were counted."""
    lease = granted.lease
    try:
        try:
            with ExitStack() as opened:
                pair = enumerate((granted.home, granted.away))
                policies = [opened.enter_context(ready.open(one, seed=seed_of(lease) + place)) for place, one in pair]
                result = play_lease(game, lease, policies, still=still)
        except OutOfTime:
            client.fail(lease, "the worker was stopped", gave_up=True)
            return 0
        except NotHere as error:
            client.fail(lease, str(error), lacks=error.name)
            return 0
        except (LeagueError, EnvError) as error:
            client.fail(lease, str(error))
            return 0
        client.finish(lease, result)
    except AnswerRefused:  # the lease was given up meanwhile: its games count for nothing
        return 0
    return lease.games
