"""Works on a pool for `league pool run`, `serve` and `work`, until a time is over or a signal asks."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from league.config.plugin_names import outside_names
from league.envs.registry import spec_of
from league.http.address import Listening
from league.http.listeners import tcp_listener
from league.http.server import ServerLimits, make_server, served_in_threads
from league.http.token_file import token_in
from league.judge.pools.core.records import GrantedBatch, PoolGame
from league.judge.pools.folder import PoolFolder
from league.judge.pools.play import env_of
from league.judge.pools.policies import ReadyPolicies
from league.judge.pools.pool import Pool, open_pool
from league.judge.pools.run import play_granted, run_here, run_processes, trusted_weights
from league.judge.pools.service.app import make_app
from league.judge.pools.service.client import AnswerRefused, PoolClient, PoolServiceError
from league.policies.trust import is_trusted, require_trusted
from league.processes.stop_signals import stop_signals
from league.progress import ProgressLine
from league.wording import counted

TEND_S = 1.0
"""Time between two looks at the inbox and at overdue leases."""


def run_pool(path: Path, *, seconds: float | None, jobs: int) -> str:
    """Play batches here; returns a sentence for the end.

    Args:
      seconds: None until a signal. jobs: processes that play; one plays in this process.
    """
    with _opened(path) as pool, stopped_by_signals(seconds) as stop:
        before = pool.state.finished
        with _progress(pool) as progress:
            if jobs == 1:
                run_here(pool, still=_still(stop), source=path, idle=stop.wait, progress=progress)
            else:
                still = _still(stop)
                run_processes(pool, path, jobs=jobs, still=still, name_of=_worker_name, say=_say, progress=progress)
        batches = pool.state.finished - before
    return f"Counted: {counted(batches, 'batch', 'batches')}; `league pool list {path}` shows the ratings."


def serve_pool(path: Path, where: Listening, *, token_file: Path | None) -> str:
    """Serve a pool to workers until a signal; returns a sentence for the end."""
    with _opened(path) as pool, stopped_by_signals(None) as stop:
        token = token_file or PoolFolder(path).token
        with serving(pool, token_in(token, make=True), where) as url, _progress(pool) as progress:
            _say(f"Workers join by `league pool work {url} --token-file {token}`.")
            while not stop.wait(TEND_S):
                pool.tend()
                progress(0)
    return f"{path} was closed; batches in hand are counted when it is served again within their time."


def work_for(url: str, *, token_file: Path, ca_file: str, seconds: float | None) -> str:
    """Join a pool and play until a signal; returns a sentence for the end."""
    worker = _worker_name(os.getpid())
    with ProgressLine(sys.stderr) as line, stopped_by_signals(seconds) as stop:
        still = _still(stop)
        token = token_in(token_file, make=False)
        with PoolClient(url, token, worker=worker, ca_file=ca_file, still=still, pause=stop.wait) as client:
            games = work(client, still=still, idle=stop.wait, progress=lambda n: line.show(counted(n, "game")))
    return f"Counted: {counted(games, 'game')}."


def _worker_name(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Pool]:
    with open_pool(PoolFolder(path), say=_say) as pool:
        yield pool


@contextlib.contextmanager
def _progress(pool: Pool) -> Iterator[Callable[[int], None]]:
    before = pool.state.finished
    with ProgressLine(sys.stderr) as line:

        def show(games: int) -> None:
            state = pool.state
            played = counted(state.finished - before, "batch", "batches")
            line.show(f"{played} counted, {counted(len(state.policies), 'policy', 'policies')}")

        yield show


def _still(stop: threading.Event) -> Callable[[], bool]:
    return lambda: not stop.is_set()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


@contextlib.contextmanager
def stopped_by_signals(seconds: float | None) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, TERM or loss of the terminal sets, or the time; a second signal leaves at once.

    Args:
      seconds: None for no limit.
    """
    stop, asked = threading.Event(), threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(128 + number)
        asked.set()
        stop.set()

    timer = None if seconds is None else threading.Timer(seconds, stop.set)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        with stop_signals(handle):
            yield stop
    finally:
        if timer is not None:
            timer.cancel()


LIMITS = ServerLimits(max_requests=256)


@contextlib.contextmanager
def serving(pool: Pool, token: str, where: Listening) -> Iterator[str]:
    """Serve a pool for as long as the block takes; gives its URL.

    Raises:
      AddressError: the address is not safe, or cannot be listened on.
    """
    with contextlib.closing(tcp_listener(where)) as listener:
        server = make_server(make_app(pool, token, hosts=where.names), LIMITS, where=where)
        with served_in_threads([(server, listener)], name="pool server"):
            yield where.url(listener.getsockname()[1])


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
