"""Plays the games of a pool's lease: two policies, every team in turn, openings shared by the games of a group."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from league.agents.acting.policy import Policy
from league.envs.placements import comparable
from league.envs.protocol import EnvConfig
from league.envs.seat_plan import SeatPlan
from league.errors import LeagueError
from league.judge.matches.match import Match
from league.judge.matches.sprt import pair_counts
from league.judge.pools.core.records import BatchLease, BatchResult, PoolGame


def env_of(game: PoolGame) -> EnvConfig:
    """The game as an env, with the seats as they are planned."""
    return msgspec.convert(game.seats, SeatPlan).put_into(EnvConfig(game.env_id, dict(game.options)))


def seed_of(lease: BatchLease) -> int:
    """The seed of a lease's games: no two leases of a pool share one."""
    digest = hashlib.sha256(f"{lease.token} {lease.lease_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def play_lease(
    game: PoolGame,
    lease: BatchLease,
    policies: Sequence[Policy],
    *,
    still: Callable[[], bool] = lambda: True,
) -> BatchResult:
    """Play the games of a lease.

    Args:
      policies: those of home and away; away takes every team but one.
      still: asked before every turn; the batch is given up once it says no.
    Raises:
      OutOfTime: it was given up. EnvError: from the env. LeagueError: a policy failed in a game.
    """
    begun = time.perf_counter()
    match = Match(env_of(game), policies, seed=seed_of(lease), opening_plies=game.opening_plies)
    played = match.play(lease.games, still=still)
    if sum(played.aborted):
        raise LeagueError(
            f"{sum(played.aborted)} of {lease.games} games were aborted, as an engine or a server failed."
        )
    returns = comparable(played.team_returns)
    margin = returns[:, :, 0] - returns[:, :, 1]
    points = (margin > 0) + (margin == 0) / 2.0
    return BatchResult(
        wins=int((margin > 0).sum()),
        draws=int((margin == 0).sum()),
        losses=int((margin < 0).sum()),
        squares=float((np.asarray(points.mean(axis=0)) ** 2).sum()),
        seconds=time.perf_counter() - begun,
        pairs=tuple(pair_counts(points.mean(axis=0)).tolist()) if game.teams == 2 else (),
    )
