"""A runtime whose hosts are stand-ins: they answer the daemon after a while and play nothing."""

from __future__ import annotations

import heapq
import math
import os
import time
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.throughput.league_scale import outcomes_of
from league.config.deadlines import PROGRESS_EVERY_S
from league.core.state.commands import FinishLease
from league.core.state.records import Lease, Progress
from league.hosts import protocol
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import (
    CheckpointTaken,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    NodeInfo,
    PlayerInstalled,
    PlayLease,
    ResetDone,
    ResetPlayer,
    SnapshotTaken,
    TakeCheckpoint,
    TakeSnapshot,
    Task,
)
from league.hosts.setup import HostSetup
from league.store.run_folder import WorkerStatus

LEARNT = 0.61
"""Decisions learnt from in a ply, as in the league of `benchmarks.throughput`."""
UPDATE_STEPS = 2_048
WARM_UP_S = 2.0


@dataclass(frozen=True)
class Reading:
    """Clocks and sums. spent_s: processor seconds of the process without those of the stand-ins."""

    at: float
    spent_s: float
    answered: int
    waited_s: float


class StandIns:
    """A runtime whose actor hosts answer each lease after a fixed time, with even games.

    Args:
      setup: of the learners, which are real, but learn nothing. players: of the league.
      number: of actor hosts. lease_s: from a lease to its answer.

    Attributes:
      readings: at the end of the warm-up, and at the newest poll since.
    """

    def __init__(self, setup: HostSetup, players: tuple[str, ...], *, number: int, lease_s: float) -> None:
        self._setup, self._players, self._lease_s = setup, players, lease_s
        self._hosts = [f"actor-{place}" for place in range(number)]
        self._learners = SyncLearnerHost(setup, dtype=torch.float32)
        self._rng = np.random.default_rng(0)
        self._due: list[tuple[float, int, Lease]] = []
        self._trained = dict.fromkeys(players, 0)
        self._free_since: dict[str, float] = {}
        self._reports: list[protocol.Report] = []
        self._asked_at = 0.0
        self._answered, self._own_s, self._waited_s = 0, 0.0, 0.0
        self._warm_at = math.inf
        self.readings: list[Reading] = []

    def start(self) -> None:
        self._reports = [HostStarted("learner-0", "learner_host", self._players)]
        self._reports += [HostStarted(host, "actor_host") for host in self._hosts]

    def submit(self, task: Task) -> None:
        begun = time.thread_time()
        if isinstance(task, PlayLease):
            now, host = time.monotonic(), task.lease.host
            first = host not in self._free_since  # they do not all begin together
            self._waited_s += 0.0 if first else now - self._free_since[host]
            due = now + self._lease_s * (self._rng.random() if first else 1.0)
            heapq.heappush(self._due, (due, task.lease.lease_id, task.lease))
        else:
            self._reports += self._answer(task)
        self._own_s += time.thread_time() - begun

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[protocol.Report]:
        now = time.monotonic()
        self._read(now)
        if not self._reports:
            time.sleep(min(max(self._due[0][0] - now, 0.0) if self._due else timeout_s, timeout_s))
        begun, now = time.thread_time(), time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, lease = heapq.heappop(self._due)
            self._reports.append(LeaseDone(lease.host, self._play(lease)))
            self._free_since[lease.host] = now
        if now - self._asked_at >= PROGRESS_EVERY_S:
            self._asked_at = now
            self._reports += [LearnerProgress(self._progress(player), None, 0) for player in self._players]
        reports, self._reports = self._reports, []
        self._own_s += time.thread_time() - begun
        return reports

    def keeps(self, snapshot: str) -> bool:
        return True

    def workers(self) -> tuple[WorkerStatus, ...]:
        return tuple(WorkerStatus("actor_host", os.getpid(), name=host) for host in self._hosts)

    def add_actor_host(self) -> str:
        raise NotImplementedError

    def remove_actor_host(self, name: str) -> None:
        raise NotImplementedError

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        raise NotImplementedError

    def nodes(self) -> tuple[NodeInfo, ...]:
        return (NodeInfo("here", "127.0.0.1", float(len(self._hosts)), 0.0, tuple(self._hosts)),)

    def close(self) -> None:
        self._learners.close()

    def _read(self, now: float) -> None:
        if self._answered >= len(self._hosts):
            self._warm_at = min(self._warm_at, now + WARM_UP_S)
        if now >= self._warm_at:
            newest = Reading(now, time.process_time() - self._own_s, self._answered, self._waited_s)
            self.readings = [*self.readings[:1], newest]

    def _play(self, lease: Lease) -> FinishLease:
        self._answered += 1
        steps = lease.steps * lease.num_envs
        if lease.home is not None:
            self._trained[lease.home] += int(LEARNT * steps)
        return FinishLease(lease.lease_id, lease.token, steps, tuple(outcomes_of(lease, self._rng)))

    def _progress(self, player: str) -> Progress:
        return Progress(player, self._trained[player] // UPDATE_STEPS, self._trained[player])

    def _answer(self, task: Task) -> list[protocol.Report]:
        learners = self._learners
        if isinstance(task, InstallPlayer):
            learners.install(task)
            return [PlayerInstalled(task.player)]
        if isinstance(task, TakeSnapshot):
            weights, trained = learners.newest(task.player).weights, self._trained[task.player]
            weights = replace(weights, version=trained // UPDATE_STEPS)
            return [SnapshotTaken(task.directive_id, task.player, weights, trained)]
        if isinstance(task, ResetPlayer):
            learners.reset(task.player, task.weights)
            return [ResetDone(task.directive_id)]
        if isinstance(task, TakeCheckpoint):
            return [CheckpointTaken(self._progress(task.player), learners.checkpoint(task.player).saved)]
        return []
