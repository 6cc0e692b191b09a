"""The runtime on Ray: every host is an actor that we restart, every call has a deadline, every loss a report."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ray

from agents.weights import Weights
from envs.protocol import EnvError
from league.config import RuntimeSettings
from league.errors import LeagueError
from league.runtime.cluster import Cluster
from league.runtime.protocol import (
    HostLost,
    HostSetup,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    PlayerInstalled,
    PlayLease,
    Report,
    ResetDone,
    ResetPlayer,
    TakeCheckpoint,
    TakeSnapshot,
    Task,
)
from league.runtime.ray_hosts import ACTORS, CREDITS, ActorHostProcess, LearnerHostProcess, LearnerUnreachable
from league.runtime.reaper import Reaper
from league.store.run_folder import WorkerStatus

START_DEADLINE_S = 120.0
CALL_DEADLINE_S = 120.0
PROGRESS_EVERY_S = 1.0
MAX_FAILURES = 5
"""Losses of one host in a row, without any work done in between, after which the run gives up."""

BACK_OFF_S = 0.5
"""Wait before a host is started again; doubles with each failure in a row."""


@dataclass
class Host:
    """One Ray actor and what it owes. kind: "actor_host" or "learner_host"; pid: 0 until it is ready."""

    name: str
    kind: str
    handle: Any = None
    pid: int = 0
    failures: int = 0
    start_at: float = 0.0


@dataclass
class Call:
    """A call on its way. answer: makes reports of its result; lost: reports where only the call failed."""

    host: Host
    deadline: float
    answer: Callable[[Any], list[Report]]
    lost: Callable[[str], list[Report]] = field(default=lambda reason: [])


class RayRuntime:
    """Actor hosts and learner hosts as Ray actors.

    Args:
      setup: what hosts build.
      settings: where Ray is and how many hosts there are.
      players: every player; player number p is held by learner host p modulo their number.
      monotonic: seconds that never go back.
      cluster: a Ray that the caller has started and will close, instead of the one that the settings name.
    """

    def __init__(
        self,
        setup: HostSetup,
        settings: RuntimeSettings,
        *,
        players: tuple[str, ...],
        monotonic: Callable[[], float] = time.monotonic,
        cluster: Cluster | None = None,
    ) -> None:
        self._setup = setup
        self._settings = settings
        self._monotonic = monotonic
        self._shares_cluster = cluster is not None
        self._cluster = cluster or Cluster(
            settings.address,
            num_hosts=settings.actor_hosts + settings.learner_hosts,
            object_store_mb=settings.object_store_mb,
            allow_tokenless=settings.allow_tokenless,
        )
        self._reaper = Reaper(self._cluster.folder)
        self._hosts = {
            name: Host(name, kind)
            for kind, stem, number in (
                ("learner_host", "learner", settings.learner_hosts),
                ("actor_host", "actor", settings.actor_hosts),
            )
            for name in (f"{stem}-{place}" for place in range(number))
        }
        self._learner_of = {player: f"learner-{place % settings.learner_hosts}" for place, player in enumerate(players)}
        self._calls: dict[Any, Call] = {}
        self._frozen: dict[str, Any] = {}
        self._asked_progress: dict[str, float] = {}
        self._reports: list[Report] = []

    def start(self) -> None:
        """Start or join Ray, and begin to bring up every host.

        Raises:
          RayUnreachable: no cluster answers. RayUnguarded: it demands no token.
        """
        if not self._shares_cluster:
            self._reaper.start()
            self._cluster.start()
        for host in self._hosts.values():
            self._spawn(host)

    def submit(self, task: Task) -> None:
        """Call the host that the task concerns; one for a host that is not there is dropped: its loss was told."""
        if isinstance(task, PlayLease):
            self._submit_lease(task)
            return
        host = self._hosts[self._learner_of[task.player]]
        if host.handle is None:
            return
        if isinstance(task, InstallPlayer):
            reference = host.handle.install.remote(task)
            self._expect(reference, host, lambda _: [PlayerInstalled(task.player)])
        elif isinstance(task, TakeSnapshot):
            self._expect(host.handle.snapshot.remote(task.order_id, task.player), host, lambda answer: [answer])
        elif isinstance(task, ResetPlayer):
            reference = host.handle.reset.remote(task.player, task.weights)
            self._expect(reference, host, lambda _: [ResetDone(task.order_id)])
        elif isinstance(task, TakeCheckpoint):
            self._expect(host.handle.checkpoint.remote(task.player), host, lambda answer: [answer])

    def poll(self, timeout_s: float) -> list[Report]:
        """Wait for any call to come back; notice deadlines, start lost hosts again, ask learners how far they are.

        Raises:
          EnvError: the env failed in a host; the user has to mend it.
          LeagueError: a host is lost again and again.
        """
        self._start_due()
        self._ask_progress()
        if self._calls:
            ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=timeout_s)
            if ready:
                ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
            for reference in ready:
                call = self._calls.pop(reference, None)
                if call is not None:
                    self._take(reference, call)
        else:
            time.sleep(min(timeout_s, BACK_OFF_S))
        self._end_overdue()
        reports, self._reports = self._reports, []
        return reports

    def workers(self) -> tuple[WorkerStatus, ...]:
        """Every host that is up."""
        return tuple(WorkerStatus(host.kind, host.pid) for host in self._hosts.values() if host.pid)

    def close(self) -> None:
        """End the hosts and a Ray of our own; may be called twice."""
        for host in self._hosts.values():
            self._kill(host, at_once=False)
        self._calls.clear()
        if not self._shares_cluster:
            self._cluster.close()
            self._reaper.close()

    def _submit_lease(self, task: PlayLease) -> None:
        lease = task.lease
        host = self._hosts[lease.host]
        if host.handle is None:
            return
        learners = {player: self._hosts[name].handle for player, name in self._learner_of.items()}
        frozen = {name: self._reference(name, weights) for name, weights in task.frozen.items()}
        self._expect(
            host.handle.play.remote(lease, share=task.share, frozen=frozen, learners=learners),
            host,
            lambda result: [LeaseDone(host.name, lease.lease_id, lease.token, result.env_steps, result.outcomes)],
            lost=lambda reason: [LeaseLost(host.name, lease.lease_id, reason)],
            deadline_s=self._settings.lease_deadline_s,
        )

    def _reference(self, snapshot: str, weights: Weights) -> Any:
        """Weights in the object store, put there once."""
        if snapshot not in self._frozen:
            self._frozen[snapshot] = ray.put(weights)
        return self._frozen[snapshot]

    def _expect(
        self,
        reference: Any,
        host: Host,
        answer: Callable[[Any], list[Report]],
        *,
        lost: Callable[[str], list[Report]] = lambda reason: [],
        deadline_s: float = CALL_DEADLINE_S,
    ) -> None:
        self._calls[reference] = Call(host, self._monotonic() + deadline_s, answer, lost)

    def _spawn(self, host: Host) -> None:
        learner = host.kind == "learner_host"
        gpus = self._cluster.gpus_per_learner(self._settings.learner_hosts) if learner else 0.0
        limits: dict[str, Any] = {"num_cpus": 1, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        if learner:
            # Every chunk on its way may wait for room, and one question more of each actor host must still get through.
            threads = self._settings.actor_hosts * (CREDITS + 2)
            make_learner = ray.remote(**limits, concurrency_groups={ACTORS: threads})
            host.handle = make_learner(LearnerHostProcess).remote(self._setup)
        else:
            host.handle = ray.remote(**limits)(ActorHostProcess).remote(self._setup, host.name)
        self._expect(host.handle.ready.remote(), host, lambda pid: self._ready(host, pid), deadline_s=START_DEADLINE_S)

    def _ready(self, host: Host, pid: int) -> list[Report]:
        host.pid = pid
        return [HostStarted(host.name, host.kind)]

    def _take(self, reference: Any, call: Call) -> None:
        try:
            answer = ray.get(reference)
        except ray.exceptions.RayActorError as error:
            self._lose(call.host, _first_line(error))
        except EnvError as error:
            raise EnvError(_cause_text(error)) from error
        except LearnerUnreachable as error:
            self._reports.extend(call.lost(_first_line(error)))
        except ray.exceptions.RayError as error:
            self._failed(call, error)
        else:
            reports = call.answer(answer)
            if _has_learnt(reports) or any(isinstance(report, LeaseDone) for report in reports):
                call.host.failures = 0
            self._reports.extend(reports)

    def _failed(self, call: Call, error: ray.exceptions.RayError) -> None:
        """The call itself raised. A lease is lost with its reason; any other failure costs the host its state."""
        reports = call.lost(_first_line(error))
        if not reports or not _from_learner(error):
            self._lose(call.host, _first_line(error))
        self._reports.extend(reports)

    def _lose(self, host: Host, reason: str) -> None:
        """Count a host as lost and set the time of its next start."""
        self._kill(host, at_once=True)
        for reference in [reference for reference, call in self._calls.items() if call.host is host]:
            del self._calls[reference]
        host.failures += 1
        if host.failures > MAX_FAILURES:
            raise LeagueError(
                f"{host.name} was lost {host.failures} times in a row without doing any work in between; "
                f"last: {reason}. Mend the cause, then `league resume` the run."
            )
        host.start_at = self._monotonic() + BACK_OFF_S * 2.0 ** (host.failures - 1)
        self._reports.append(HostLost(host.name, host.kind, reason))

    def _kill(self, host: Host, *, at_once: bool) -> None:
        """End a host; at once, by the kernel, where it may be frozen and could not hear Ray."""
        if host.handle is not None:
            with contextlib.suppress(ray.exceptions.RayError, ValueError, RuntimeError):
                ray.kill(host.handle, no_restart=True)
        if at_once and host.pid and self._settings.address == "local":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(host.pid, signal.SIGKILL)
        host.handle, host.pid = None, 0

    def _start_due(self) -> None:
        for host in self._hosts.values():
            if host.handle is None and self._monotonic() >= host.start_at:
                self._spawn(host)

    def _ask_progress(self) -> None:
        now = self._monotonic()
        for host in self._hosts.values():
            due = now - self._asked_progress.get(host.name, 0.0) >= PROGRESS_EVERY_S
            if host.kind == "learner_host" and host.pid and due:
                self._asked_progress[host.name] = now
                self._expect(host.handle.progress.remote(), host, list)

    def _end_overdue(self) -> None:
        now = self._monotonic()
        for call in [call for call in self._calls.values() if call.deadline < now]:
            if call.host.handle is not None:
                self._lose(call.host, "it did not answer before its deadline")


def _first_line(error: BaseException) -> str:
    """The last meaningful line of an error: Ray puts a remote traceback before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]


def _cause_text(error: BaseException) -> str:
    """What a remote error says for itself, without the traceback that Ray puts before it."""
    cause = getattr(error, "cause", None)
    return str(cause) if isinstance(cause, BaseException) else _first_line(error)


def _from_learner(error: ray.exceptions.RayError) -> bool:
    """Whether a failed lease failed because of its learner, so that the actor host itself is sound."""
    return "UnknownPlayer" in str(error)


def _has_learnt(reports: list[Report]) -> bool:
    """Whether a learner host has made an update since it was started."""
    return any(isinstance(report, LearnerProgress) and report.update is not None for report in reports)
