"""Works on a pool for `league pool run`, `serve` and `work`, until a time is over or a signal asks."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from league.http.address import Listening
from league.http.token_file import token_in
from league.judge.pools.folder import PoolFolder
from league.judge.pools.pool import Pool, open_pool
from league.judge.pools.run import run_here, run_processes
from league.judge.pools.service.client import PoolClient
from league.judge.pools.service.server import serving
from league.judge.pools.service.worker import work
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
