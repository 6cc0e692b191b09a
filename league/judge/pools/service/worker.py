"""A worker: joins a pool, plays the batches that it is given, and sends each result until it is acknowledged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from league.config.plugin_names import outside_names
from league.envs.registry import spec_of
from league.judge.pools.core.records import GrantedBatch, PoolGame
from league.judge.pools.play import env_of
from league.judge.pools.policies import ReadyPolicies
from league.judge.pools.run import play_granted, trusted_weights
from league.judge.pools.service.client import AnswerRefused, PoolClient, PoolServiceError
from league.policies.trust import is_trusted, require_trusted

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
    if not is_trusted(client.url):
        require_trusted(outside_names({"env": {"id": game.env_id, "kwargs": game.options}}), what="the pool")
    spec = spec_of(dataclasses.replace(env_of(game), workers=0))
    ready = ReadyPolicies(env_of(game), spec, trusted_weights(client.weights, client.url), pool=client.url)
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
    lease, answer = granted.lease, play_granted(game, granted, ready, still=still)
    try:
        if answer.result is None:
            client.fail(lease, answer.reason, gave_up=answer.gave_up, lacks=answer.lacks)
            return 0
        client.finish(lease, answer.result)
    except AnswerRefused:  # the lease was given up meanwhile: its games count for nothing
        return 0
    return lease.games
