"""A learner's stages and replicas as Ray actors: each on the GPU that is kept for it, else on a CPU."""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

import ray
import torch

from league.agents.learner.errors import StageDiedError, StageError, StageHungError
from league.agents.learner.workers.build_worker import Worker, make_worker
from league.agents.learner.workers.worker import Answer, Request, WorkerSetup
from league.hosts.on_ray.nodes.learner_groups import WorkerPlace
from league.hosts.on_ray.ray_actors import actor_class
from league.wording import counted

logger = logging.getLogger(__name__)

PLACE_DEADLINE_S = 60.0
"""Longest wait for the cluster to make room for the workers."""


class StageProcess:
    """One worker of a group, in a process of its own."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def place(self) -> tuple[str, int, bool]:
        """Address of this process's machine, a port there that is free now, and whether torch sees a GPU here."""
        address = ray.util.get_node_ip_address()
        with socket.socket() as probe:
            probe.bind((address, 0))
            return address, int(probe.getsockname()[1]), torch.cuda.is_available()

    def start(self, setup: WorkerSetup, *, one_machine: bool) -> None:
        """Build the stages and join the group; returns once every worker has joined."""
        if one_machine and sys.platform == "linux":
            os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        self._worker = make_worker(setup)

    def handle(self, request: Request) -> Answer:
        """As `GroupWorker.handle`."""
        assert self._worker is not None, "not started"
        return self._worker.handle(request)


class RayWorkerGroup:
    """The workers of one learner; owned by the learner host that makes it, and gone with it.

    Args:
      setups: one for each rank; device and rendezvous are filled in here.
      place: kept for this learner as long as the run lasts, so that a worker that takes the place of a lost one finds
        its GPU; None for workers on any CPU.
    Raises:
      StageDiedError: the cluster had no room for a worker.
    """

    def __init__(self, setups: Sequence[WorkerSetup], *, place: WorkerPlace | None = None) -> None:
        self._place = place
        self._sent: dict[Any, int] = {}
        self._actors: list[Any] = [self._actor(rank) for rank in range(len(setups))]
        try:
            places = ray.get([actor.place.remote() for actor in self._actors], timeout=PLACE_DEADLINE_S)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
            self.kill()
            raise StageDiedError(f"the cluster had no room for {counted(len(setups), 'worker')}: {error}") from error
        address, port, _ = places[0]
        self._one_machine = len({host for host, _, _ in places}) == 1
        elsewhere = [host for host, _, _ in places if host != ray.util.get_node_ip_address()]
        if setups[0].folder and elsewhere:
            self.kill()
            raise StageDiedError(
                f"{counted(len(elsewhere), 'replica')} of {len(places)} came to another machine than their learner, "
                "and they share its memory: use fewer replicas, or update_mode: all_reduce"
            )
        has_gpus = place is not None and place.first_bundle is not None
        on_gpu = has_gpus and all(sees_gpu for _, _, sees_gpu in places)
        if has_gpus and not on_gpu:
            blind = ", ".join(str(rank) for rank, (_, _, sees_gpu) in enumerate(places) if not sees_gpu)
            logger.warning("worker %s sees no GPU although Ray gave it one: all workers compute on the CPU", blind)
        device, rendezvous = "cuda:0" if on_gpu else "cpu", f"tcp://{address}:{port}"
        self._setups = [
            dataclasses.replace(setup, device="cpu" if setup.device == "cpu" else device, rendezvous=rendezvous)
            for setup in setups
        ]
        self._starting: list[Any] = [self._start(rank) for rank in range(len(setups))]

    def call(self, requests: Sequence[Request | None], *, timeout_s: float) -> list[Answer]:
        """As in the protocol; the first call also waits for the start of all workers."""
        if not self._actors:
            raise StageDiedError("the workers are not running")
        references = {
            actor.handle.remote(request): rank
            for rank, (actor, request) in enumerate(zip(self._actors, requests, strict=True))
            if request is not None
        }
        starting, self._starting = self._starting, []
        self._collect({reference: rank for rank, reference in enumerate(starting)}, timeout_s)
        collected = self._collect(references, timeout_s)
        return [collected.get(rank) for rank in range(len(requests))]

    def send(self, rank: int, request: Request) -> None:
        self._sent[self._actors[rank].handle.remote(request)] = rank

    def receive(self, *, timeout_s: float) -> list[tuple[int, Answer | StageError]]:
        if not self._sent:
            return []
        ready, _ = ray.wait(list(self._sent), num_returns=1, timeout=timeout_s)
        answers: list[tuple[int, Answer | StageError]] = []
        for reference in ready:
            rank = self._sent.pop(reference)
            try:
                answers.append((rank, _answer(reference, rank)))
            except StageError as error:
                answers.append((rank, error))
        return answers

    def restart(self, rank: int) -> None:
        ray.kill(self._actors[rank], no_restart=True)
        self._sent = {reference: other for reference, other in self._sent.items() if other != rank}
        self._actors[rank] = self._actor(rank)
        self._start(rank)

    def kill(self) -> None:
        for actor in self._actors:
            ray.kill(actor, no_restart=True)
        self._actors, self._sent = [], {}

    def _actor(self, rank: int) -> Any:
        limits = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}
        place = {} if self._place is None else self._place.options(rank)
        return actor_class(StageProcess).options(**limits, **place).remote()

    def _start(self, rank: int) -> Any:
        return self._actors[rank].start.remote(self._setups[rank], one_machine=self._one_machine)

    @staticmethod
    def _collect(references: dict[Any, int], timeout_s: float) -> dict[int, Answer]:
        """Answers by rank; the first worker that fails ends the wait."""
        answers: dict[int, Answer] = {}
        waiting = list(references)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=timeout_s)
            if not ready:
                ranks = ", ".join(str(references[reference]) for reference in waiting)
                raise StageHungError(f"no answer from worker {ranks} within {timeout_s:g} s")
            rank = references[ready[0]]
            answers[rank] = _answer(ready[0], rank)
        return answers


def _answer(reference: Any, rank: int) -> Answer:
    """The answer behind a reference that is ready. Raises StageDiedError."""
    try:
        answer: Answer = ray.get(reference)
    except ray.exceptions.RayActorError as error:
        raise StageDiedError(f"worker {rank} ended: {error}") from error
    except ray.exceptions.RayTaskError as error:
        raise StageDiedError(f"worker {rank} failed: {error}") from error
    return answer
