"""Data parallelism in one process: threads that compute gradients of different microbatches at the same time.

torch releases Python's lock in its kernels and in the whole backward pass, so that threads compute in parallel without
copies of rows or weights. Replicas in processes need both, and messages. On a GPU every thread has a stream.
"""

from __future__ import annotations

import concurrent.futures
import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from league.agents.learner.algorithms.objective import BatchLoss, LossWeights, Objective, make_objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.data.streams import mark, wait_for
from league.agents.learner.errors import StageHungError
from league.agents.learner.step.backend import Placement, SingleBackend, join_outputs
from league.agents.nets.network import Network, NetworkOutput
from league.agents.torch_runtime import prepare_process

Result = TypeVar("Result")


class _Copy:
    """A copy of the network for one thread: the same weights in the same memory, gradients of its own."""

    def __init__(self, network: Network, config: LearnerConfig, placement: Placement) -> None:
        self._original = network
        self._own = copy.deepcopy(network)
        for mine, theirs in zip(self._own.parameters(), network.parameters(), strict=True):
            mine.data = theirs.data
            mine.grad = torch.zeros_like(mine)
        self.backend = SingleBackend(self._own, make_objective(config, self._own.head), config, placement)

    def clear(self) -> None:
        """Start again from gradients of 0: a batch that was given up may have left some."""
        torch._foreach_zero_(_gradients(self._own))

    def hand_over(self) -> None:
        """Add the gradients to those of the original."""
        torch._foreach_add_(_gradients(self._original), _gradients(self._own))


class DataParallelBackend:
    """Up to `config.pipeline.threads` microbatches at the same time.

    The first of them is computed in the calling thread, so that a batch in one piece costs what it costs without other
    threads. Gradients are added in the order of the threads: equal microbatches have equal gradients.
    """

    def __init__(self, network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> None:
        self._network = network
        self._config = config
        self._placement = placement
        self._threads = config.pipeline.threads
        self._here = SingleBackend(network, objective, config, placement)
        self._copies: list[_Copy] = []
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        """As in the protocol.

        Raises:
          StageHungError: a thread took longer than `pipeline.stage_timeout_s`. It may still add to gradients that
            nobody reads.
        """
        losses: list[BatchLoss] = []
        used = 0
        for copied in self._copies:
            copied.clear()
        for group in self._groups(microbatches):
            losses += self._each(group, lambda backend, batch: backend.accumulate([batch], loss_weights))
            used = max(used, len(group) - 1)
        for copied in self._copies[:used]:
            copied.hand_over()
        return BatchLoss.of(losses, device=self._placement.device)

    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        """As in the protocol; errors as of `accumulate`."""
        outputs: list[NetworkOutput] = []
        for group in self._groups(microbatches):
            parts = self._each(group, lambda backend, batch: backend.evaluate([batch]))
            outputs.extend(part for part in parts if part is not None)
        return join_outputs(outputs)

    def close(self) -> None:
        """End the threads."""
        self._drop(wait=True)

    def _groups(self, microbatches: Iterable[Batch]) -> Iterable[list[Batch]]:
        """As many microbatches as there are threads at a time."""
        iterator = iter(microbatches)
        while group := list(itertools.islice(iterator, self._threads)):
            yield group

    def _each(self, group: Sequence[Batch], compute: Callable[[SingleBackend, Batch], Result]) -> list[Result]:
        """The results of microbatches in order: the first in the calling thread, each other one in a thread."""
        first, *others = group
        if not others:
            return [compute(self._here, first)]
        if self._pool is None:
            self._copies = [_Copy(self._network, self._config, self._placement) for _ in range(self._threads - 1)]
            self._pool = concurrent.futures.ThreadPoolExecutor(
                self._threads - 1, "learner-thread", initializer=self._prepare_thread
            )
        given = mark(self._placement.device)
        tasks = [
            self._pool.submit(self._elsewhere, compute, copied.backend, batch, given)
            for copied, batch in zip(self._copies, others, strict=False)
        ]
        try:
            result = compute(self._here, first)
        finally:  # whatever was raised here, no thread may still compute when the batch is given up
            late = concurrent.futures.wait(tasks, timeout=self._config.pipeline.stage_timeout_s).not_done
            if late:
                self._drop(wait=False)
        if late:
            limit = self._config.pipeline.stage_timeout_s
            raise StageHungError(f"{len(late)} threads of the learner did not end within {limit:g} s")
        return [result, *(self._taken(*task.result()) for task in tasks)]

    def _prepare_thread(self) -> None:
        """Settings of a new thread; on a GPU its own stream."""
        prepare_process()
        if self._placement.device.type == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream(self._placement.device))  # type: ignore[no-untyped-call]

    def _elsewhere(
        self,
        compute: Callable[[SingleBackend, Batch], Result],
        backend: SingleBackend,
        batch: Batch,
        given: torch.cuda.Event | None,
    ) -> tuple[Result, torch.cuda.Event | None]:
        """The result in another thread, and the mark after it; `given` is the mark after the inputs."""
        wait_for(given, self._placement.device, read=batch.tensors())
        return compute(backend, batch), mark(self._placement.device)

    def _taken(self, result: Result, ended: torch.cuda.Event | None) -> Result:
        """A result of another thread, for which this one's stream waits."""
        wait_for(ended, self._placement.device, read=_tensors_of(result))
        return result

    def _drop(self, *, wait: bool) -> None:
        """End the threads and forget their copies of the network."""
        if self._pool is not None:
            self._pool.shutdown(wait=wait, cancel_futures=True)
        self._pool, self._copies = None, []


def _gradients(network: Network) -> list[Tensor]:
    """Gradients of a network's parameters, in order."""
    gradients = [parameter.grad for parameter in network.parameters()]
    assert all(gradient is not None for gradient in gradients), "the optimizer gives every parameter a gradient of 0"
    return [gradient for gradient in gradients if gradient is not None]


def _tensors_of(output: object) -> list[Tensor]:
    """The tensors of a network's output or of a loss; none of anything else."""
    if isinstance(output, BatchLoss):
        return [output.columns] if output.row_errors is None else [output.columns, output.row_errors]
    return [output.logits, output.values, output.core] if isinstance(output, NetworkOutput) else []
