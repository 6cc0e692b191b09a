"""Bookkeeping of the Ray runtime: hosts, calls in flight, what a directive calls, and the error texts of calls."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import ray

from league.config.deadlines import PROGRESS_EVERY_S
from league.errors import LeagueError
from league.runtime.protocol import (
    InstallPlayer,
    LearnerProgress,
    PlayerInstalled,
    Reconfigure,
    Report,
    ResetDone,
    ResetPlayer,
    TakeCheckpoint,
    TakeSnapshot,
)

LATE_S = 2.0 * PROGRESS_EVERY_S
"""A learner host without a sign for longer than this is late: leases that wait for it are not overdue."""

Directive = tuple[Callable[[Any], Any], Callable[[Any], list[Report]]]
"""A call of a learner host, given its handle, and the reports that its result makes."""


@dataclass
class Host:
    """One Ray actor and what it owes.

    Fields:
      kind: "actor_host", "learner_host" or "inference_host". pid: 0 until it is ready.
      is_added: whether it came while the run went.
      failures: losses in a row. parked: whether these are too many, so that it is tried again only now and then.
      tasks: of a learner host, in order; the first of them is under way where `is_busy`.
      asked_at, answered_at: when it was last asked how far it is, and when it last said so.
    """

    name: str
    kind: str
    handle: Any = None
    pid: int = 0
    is_added: bool = False
    failures: int = 0
    parked: bool = False
    start_at: float = 0.0
    tasks: deque[Directive] = field(default_factory=deque)
    is_busy: bool = False
    is_asked: bool = False
    asked_at: float = 0.0
    answered_at: float = 0.0


@functools.cache
def actor_class(process: type, **concurrency_groups: int) -> Any:
    """The Ray actor class of a process, made once: Ray keeps each one that is made, 45 KiB of it.

    Args:
      concurrency_groups: threads by name of the group.
    """
    return (ray.remote(concurrency_groups=concurrency_groups) if concurrency_groups else ray.remote)(process)


@dataclass
class Call:
    """A call on its way.

    Fields:
      answer: makes reports of its result. lost: reports where only the call failed.
      learner: the learner host that it waits for in turn.
      keeps: references to objects that must live as long as the call.
    """

    host: Host
    deadline: float
    answer: Callable[[Any], list[Report]]
    lost: Callable[[str], list[Report]] = field(default=lambda reason: [])
    learner: Host | None = None
    keeps: tuple[Any, ...] = ()


def require_others(hosts: Iterable[Host], host: Host, reason: str) -> None:
    """Let the run end where it needs a parked host: each learner host holds players, of actor hosts one will do.

    Raises:
      LeagueError: it needs this one.
    """
    actors = [other for other in hosts if other.kind == "actor_host"]
    if host.kind == "actor_host" and not all(actor.parked for actor in actors):
        return
    of_all = ", like every other actor host" if host.kind == "actor_host" and len(actors) > 1 else ""
    raise LeagueError(
        f"{host.name} was lost {host.failures} times in a row without doing any work in between{of_all}; "
        f"last: {reason}. Mend the cause, then `league resume` the run."
    )


def is_late(learner: Host | None, now: float) -> bool:
    """True if a learner host is absent or unresponsive; those that wait for it are then not to blame."""
    return learner is not None and (not learner.pid or now - learner.answered_at > LATE_S)


def kill_host(host: Host, *, through_ray: bool, by_kernel: bool) -> None:
    """End a host's process.

    Args:
      through_ray: Ray ends it, which takes its control store. by_kernel: on this machine, also where it is frozen.
    """
    if host.handle is not None and through_ray:
        with contextlib.suppress(ray.exceptions.RayError, ValueError, RuntimeError):
            ray.kill(host.handle, no_restart=True)
    if host.pid and by_kernel:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(host.pid, signal.SIGKILL)
    host.handle, host.pid = None, 0


def last_line(error: BaseException) -> str:
    """The last meaningful line of an error: Ray puts a remote traceback before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]


def cause_text(error: BaseException) -> str:
    """The message of a remote error, without the traceback that Ray puts before it."""
    cause = getattr(error, "cause", None)
    return str(cause) if isinstance(cause, BaseException) else last_line(error)


def has_learnt(reports: list[Report]) -> bool:
    """True if a learner host has made an update since it was started."""
    return any(isinstance(report, LearnerProgress) and report.update is not None for report in reports)


def directive_of(
    task: InstallPlayer | TakeSnapshot | ResetPlayer | Reconfigure | TakeCheckpoint,
) -> Directive:
    """The call of a task for a learner host, and the reports that its result makes."""
    if isinstance(task, InstallPlayer):
        return lambda handle: handle.install.remote(task), lambda _: [PlayerInstalled(task.player)]
    if isinstance(task, TakeSnapshot):
        return lambda handle: handle.snapshot.remote(task.directive_id, task.player), lambda answer: [answer]
    if isinstance(task, ResetPlayer):
        return lambda handle: handle.reset.remote(task.player, task.weights), lambda _: [ResetDone(task.directive_id)]
    if isinstance(task, Reconfigure):
        return lambda handle: handle.reconfigure.remote(task), lambda _: []
    return lambda handle: handle.checkpoint.remote(task.player), lambda answer: [answer]
