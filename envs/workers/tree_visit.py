"""The tree of a small game that is slow or unsafe: visited in a child process, whose end costs the visit alone."""

from __future__ import annotations

import time
from dataclasses import replace

from league.envs.protocol import EnvConfig, EnvError
from league.envs.search.known_tree import KnownTree, tree_from_bytes
from league.envs.search.tree_walk import Progress, no_progress
from league.envs.workers.channel import ERROR, PROGRESS, VISIT
from league.envs.workers.process import GamesProcess, Stopped
from league.envs.workers.worker_env import games_processes

GRACE_S = 10.0
"""Seconds past the limit that a process has to finish the step that it is in and to hand over what it found."""


def tree_in_child(config: EnvConfig, *, limit_s: float, progress: Progress = no_progress) -> KnownTree:
    """As `known_tree`, in a process of its own.

    Raises:
      EnvError: as there; or the process died, hung or grew too large, and is gone.
    """
    (process,) = games_processes(replace(config, workers=1), num_envs=1, num_workers=1)
    try:
        process.start()
        process.spec()
        return _asked(process, limit_s, progress)
    except Stopped as stopped:
        raise EnvError(f"its visit in a child process failed: it {stopped.reason}") from stopped
    finally:
        process.leave()
        process.close()


def _asked(process: GamesProcess, limit_s: float, progress: Progress) -> KnownTree:
    process.send(VISIT, limit_s)
    until = time.monotonic() + limit_s + GRACE_S
    while True:
        kind, payload = process.wait(
            max(until - time.monotonic(), 0.0), what=f"visited every history after {limit_s:g} s"
        )
        if kind == PROGRESS:
            progress(*payload)
            continue
        if kind == ERROR:
            raise EnvError(payload)
        return tree_from_bytes(process.written(payload))
