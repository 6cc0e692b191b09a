"""The step backend: leaves the summed gradient of a batch in the parameters' `.grad`, whatever way it is computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from agents.learner.algorithms.loss_stats import empty_stats
from agents.learner.algorithms.objective import LossWeights, Objective
from agents.learner.algorithms.registry import BACKENDS
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.nets.network import Network, NetworkOutput
from envs.plugins import resolve


class StepBackend(Protocol):
    """Computes gradients. The tail that divides, clips and steps is the same for all."""

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> Tensor:
        """Add the gradient of the summed loss to the network's gradients; returns the columns of the loss (see
        `stats`).

        A microbatch is taken from the iterable when it is needed, so that work starts before the last one has arrived.
        """
        ...

    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        """The network's answers to all rows, without gradient; None in a worker that does not hold the last stage."""
        ...

    def close(self) -> None:
        """Release threads and streams; may be called twice."""
        ...


@dataclass(frozen=True)
class Boundary:
    """The tensor that leaves a stage: its axes behind rows and steps, and its type."""

    inner: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Placement:
    """Where a backend works.

    Fields:
      dtype: compute type of the forward pass; device: of the parameters.
      worker: place of this process among the workers of its pipeline, from 0.
      pipe_group: the process group of that pipeline; None where the whole network is in this process.
      boundaries: what leaves each stage of that pipeline, first to last; empty where the whole network is here.
    """

    dtype: torch.dtype
    device: torch.device
    worker: int = 0
    pipe_group: ProcessGroup | None = None
    boundaries: tuple[Boundary, ...] = ()

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """Mixed precision for a forward pass, in the calling thread."""
        if self.dtype in (torch.float32, torch.float64):
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)


def make_backend(network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> StepBackend:
    """The backend that the settings name, a registered one or "module:attribute".

    Raises:
      ValueError: there is no such backend.
    """
    build = resolve(config.pipeline.backend_name, BACKENDS, what="learner.pipeline.backend")
    backend: StepBackend = build(network, objective, config, placement)
    return backend


class SingleBackend:
    """One device, microbatches one after the other: the gradients of a large batch in the memory of a small one."""

    def __init__(self, network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> None:
        self._network = network
        # A replayed CUDA graph writes its answers where those of the run before lie.
        self._overwrites = config.compile_mode == "reduce-overhead"
        if config.compile_mode != "none":
            network.compile(mode=config.compile_mode)
        self._objective = objective
        self._placement = placement

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> Tensor:
        """As in the protocol."""
        stacked = empty_stats(self._placement.device)
        for microbatch in microbatches:
            output = self._forward(microbatch)
            loss, parts = self._objective.loss(output, microbatch, loss_weights)
            torch.autograd.backward(loss)
            stacked += parts
        return stacked

    @torch.no_grad()
    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        """As in the protocol."""
        outputs = []
        for microbatch in microbatches:
            output = self._forward(microbatch)
            outputs.append(copy_of(output) if self._overwrites else output)
        return join_outputs(outputs)

    def close(self) -> None:
        """Nothing is held."""

    def _forward(self, batch: Batch) -> NetworkOutput:
        with self._placement.autocast():
            output: NetworkOutput = self._network(
                batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask
            )
        return output


def copy_of(output: NetworkOutput) -> NetworkOutput:
    """The same answers in memory of their own."""
    return NetworkOutput(logits=output.logits.clone(), values=output.values.clone(), core=output.core.clone())


def join_outputs(outputs: Sequence[NetworkOutput]) -> NetworkOutput:
    """All rows of the answers to several microbatches, in order."""
    if len(outputs) == 1:
        return outputs[0]
    return NetworkOutput(
        logits=torch.cat([output.logits for output in outputs]),
        values=torch.cat([output.values for output in outputs]),
        core=torch.cat([output.core for output in outputs]),
    )
