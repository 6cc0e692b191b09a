"""Plays batches of a pool on this machine: in this process, or in processes of its own."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from league.envs.protocol import EnvError
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.matches.game_batch import OutOfTime
from league.judge.pools.core.records import BatchAnswer, GrantedBatch, PoolGame
from league.judge.pools.core.rules import NotOpen
from league.judge.pools.folder import PoolFolder
from league.judge.pools.play import env_of, play_lease, seed_of
from league.judge.pools.policies import NotHere, ReadyPolicies, Weights
from league.judge.pools.pool import Pool, PoolError
from league.policies.trust import is_trusted, names_of_manifest, require_trusted, trust_places
from league.processes.task_processes import TaskProcesses
from league.processes.tasks import SignOfLife
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest

IDLE_S = 0.5
"""Pause where there is nothing to play."""
MAX_DEATHS = 3
"""Deaths for each process without a counted batch in between, up to which a dead process is replaced."""


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
        answer = play_granted(pool.game, granted, ready, still=still)
        pool.answer(granted.lease.lease_id, granted.lease.token, answer)
        games += granted.lease.games if answer.result is not None else 0
        progress(games)
    return games


def play_granted(
    game: PoolGame, granted: GrantedBatch, ready: ReadyPolicies, *, still: Callable[[], bool]
) -> BatchAnswer:
    """Play a batch, or say why it cannot be played. still: as of `play_lease`."""
    try:
        with ExitStack() as opened:
            pair = enumerate((granted.home, granted.away))
            seed = seed_of(granted.lease)
            policies = [opened.enter_context(ready.open(one, seed=seed + place)) for place, one in pair]
            return BatchAnswer(play_lease(game, granted.lease, policies, still=still))
    except OutOfTime:
        return BatchAnswer(None, "the play was stopped", gave_up=True)
    except NotHere as error:
        return BatchAnswer(None, str(error), lacks=error.name)
    except (LeagueError, EnvError) as error:
        return BatchAnswer(None, str(error))


@dataclass(frozen=True)
class PoolPlace:
    """A pool of this machine, as a process needs it to play. is_trusted: whether the user trusts its folder."""

    game: PoolGame
    path: Path
    is_trusted: bool


def player_for(place: PoolPlace) -> Callable[[GrantedBatch, SignOfLife], tuple[GrantedBatch, BatchAnswer]]:
    """A function that plays granted batches in this process, given a sign of life to call.

    Raises:
      EnvError: the game cannot be made here.
    """
    if place.is_trusted:
        trust_places([place.path])
    env, store = env_of(place.game), LocalSnapshotStore(PoolFolder(place.path).policies)
    spec = spec_of(dataclasses.replace(env, workers=0))
    ready = ReadyPolicies(env, spec, trusted_weights(store.get, place.path), pool=place.path)
    return lambda granted, still: (granted, play_granted(place.game, granted, ready, still=still))


def trusted_weights(weights: Weights, pool: Path | str) -> Weights:
    """The weights of a pool, which are refused where they name code that may not be loaded here."""
    if is_trusted(pool):
        return weights

    def checked(digest: str) -> tuple[bytes, SnapshotManifest]:
        found, manifest = weights(digest)
        require_trusted([name for name in names_of_manifest(manifest) if name.kind != "env"], what="the pool")
        return found, manifest

    return checked


def run_processes(
    pool: Pool,
    path: Path,
    *,
    jobs: int,
    still: Callable[[], bool],
    name_of: Callable[[int], str],
    say: Callable[[str], object],
    progress: Callable[[int], object],
) -> None:
    """Play batches in processes while `still` says yes. Batches in hand are given up at the end.

    Args:
      path: the pool's folder. name_of: the name of a worker by its process id. progress: called now and then.
    Raises:
      PoolError: processes die again and again, and no batch is counted. TasksFailed: the game cannot be made there.
    """
    deaths, finished = 0, pool.state.finished

    def lost(granted: GrantedBatch, pid: int, how: str) -> bool:
        nonlocal deaths, finished
        deaths = deaths + 1 if pool.state.finished == finished else 1
        finished = pool.state.finished
        pool.worker_died(name_of(pid), how)
        if deaths > MAX_DEATHS * jobs:
            raise PoolError(f"worker processes end again and again, the last with {how}; what they said stands above.")
        say(f"A worker process has ended ({how}); another takes its place.")
        return False

    place = PoolPlace(pool.game, path, is_trusted(path))
    with TaskProcesses[GrantedBatch, tuple[GrantedBatch, BatchAnswer]](
        player_for, place, jobs=jobs, lost=lost
    ) as players:
        while still():
            while players.has_room and (granted := pool.lease(name_of(players.next_pid()))) is not None:
                players.give(granted)
            for granted, answer in players.wait():
                with suppress(NotOpen):  # it was given up meanwhile: its games count for nothing
                    pool.answer(granted.lease.lease_id, granted.lease.token, answer)
            pool.tend()
            progress(0)
        for granted in players.tasks:
            with suppress(NotOpen):
                pool.give_up(granted.lease.lease_id, granted.lease.token, "the play was stopped")
