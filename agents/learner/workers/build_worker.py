"""Makes the worker that a setup describes."""

from __future__ import annotations

from typing import Protocol

import torch

from league.agents.learner.workers.free_worker import FreeReplica, ShardWorker
from league.agents.learner.workers.worker import Answer, GroupWorker, Request, WorkerSetup
from league.agents.torch_runtime import keep_float32, prepare_process


class Worker(Protocol):
    """One member of a group."""

    def handle(self, request: Request) -> Answer:
        """Serve a request."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


def make_worker(setup: WorkerSetup) -> Worker:
    """The worker of a setup, for a process of its own, which it prepares."""
    if not setup.config.pipeline.is_free:
        return GroupWorker(setup)
    if setup.device == "cpu":
        prepare_process()
    else:
        keep_float32()
        torch.cuda.set_device(torch.device(setup.device))
    return make_member(setup)


def make_member(setup: WorkerSetup) -> Worker:
    """A member of a free group, for a thread or a process: its replicas come first, then the shards of its server."""
    return FreeReplica(setup) if setup.rank < setup.config.pipeline.replicas else ShardWorker(setup)
