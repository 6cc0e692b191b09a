"""Calls of hosts in flight, each with its deadline, and the calls that the tasks of a learner host become."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ray

from league.config.deadlines import PROGRESS_EVERY_S
from league.hosts.on_ray.roster import Host, LearnerCall
from league.hosts.protocol import (
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


@dataclass
class RemoteCall:
    """A call on its way.

    Fields:
      answer: makes reports of its result. lost: reports where only the call failed.
      learner: the learner host that it waits for in turn.
      keeps: references to objects that must live as long as the call.
    """

    host: Host
    deadline: float
    answer: Callable[[Any], list[Report]]
    lost: Callable[[str], list[Report]]
    learner: Host | None
    keeps: tuple[Any, ...]


class PendingCalls:
    """Calls in flight by the references that Ray gave for them. monotonic: seconds that never go back."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._calls: dict[Any, RemoteCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[RemoteCall]:
        return iter(self._calls.values())

    def expect(
        self,
        reference: Any,
        host: Host,
        answer: Callable[[Any], list[Report]],
        *,
        deadline_s: float,
        lost: Callable[[str], list[Report]] = lambda reason: [],
        learner: Host | None = None,
        keeps: tuple[Any, ...] = (),
    ) -> None:
        """Keep a call until it comes back; the rest as the fields of `RemoteCall`. deadline_s: from now."""
        self._calls[reference] = RemoteCall(host, self._monotonic() + deadline_s, answer, lost, learner, keeps)

    def take_finished(self, timeout_s: float) -> Iterator[tuple[Any, RemoteCall]]:
        """Each call that has come back, waiting for the first one; those forgotten in between are left out."""
        ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=timeout_s)
        if ready:
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        for reference in ready:
            call = self._calls.pop(reference, None)
            if call is not None:
                yield reference, call

    def overdue(self) -> Iterator[RemoteCall]:
        """The calls past their deadline, but for those that wait for a learner host that is late itself."""
        now = self._monotonic()
        for call in [call for call in self._calls.values() if call.deadline < now]:
            if not is_late(call.learner, now):
                yield call

    def forget(self, host: Host) -> None:
        """Give up everything that a host owes."""
        for reference in [reference for reference, call in self._calls.items() if call.host is host]:
            del self._calls[reference]

    def clear(self) -> None:
        """Give up all."""
        self._calls.clear()


def is_late(learner: Host | None, now: float) -> bool:
    """True if a learner host is absent or unresponsive; those that wait for it are then not to blame."""
    return learner is not None and (not learner.pid or now - learner.answered_at > LATE_S)


def has_learnt(reports: list[Report]) -> bool:
    """True if a learner host has made an update since it was started."""
    return any(isinstance(report, LearnerProgress) and report.update is not None for report in reports)


def learner_call(
    task: InstallPlayer | TakeSnapshot | ResetPlayer | Reconfigure | TakeCheckpoint,
) -> LearnerCall:
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
