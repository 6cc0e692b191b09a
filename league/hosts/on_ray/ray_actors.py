"""Actors of Ray: their classes, their end, and the text of their errors."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from typing import Any

import ray

from league.wording import error_line


@functools.cache
def actor_class(process: type, **concurrency_groups: int) -> Any:
    """The Ray actor class of a process, made once: Ray keeps each one that is made, 45 KiB of it.

    Args:
      concurrency_groups: threads by name of the group.
    """
    return (ray.remote(concurrency_groups=concurrency_groups) if concurrency_groups else ray.remote)(process)


def kill_actor(handle: Any, pid: int, *, through_ray: bool, by_kernel: bool) -> None:
    """End the process of an actor.

    Args:
      handle: None if there is none. pid: 0 where it is not known yet.
      through_ray: Ray ends it, which takes its control store. by_kernel: on this machine, also where it is frozen.
    """
    if handle is not None and through_ray:
        with contextlib.suppress(ray.exceptions.RayError, ValueError, RuntimeError):
            ray.kill(handle, no_restart=True)
    if pid and by_kernel:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def cause_text(error: BaseException) -> str:
    """The message of a remote error, without the traceback that Ray puts before it."""
    cause = getattr(error, "cause", None)
    return str(cause) if isinstance(cause, BaseException) else error_line(error)
