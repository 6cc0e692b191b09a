"""Step backends: each leaves the summed gradient of a batch in the parameters' `.grad`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.distributed import ProcessGroup

from league.agents.learner.algorithms.algorithms import BACKENDS
from league.agents.learner.algorithms.objective import BatchLoss, Loss, LossWeights, NetworkObjective, Objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.step.vtrace_update import VTraceUpdate
from league.agents.nets.attention import TransformerLayer
from league.agents.nets.kernels.gpu import KERNEL_DTYPES
from league.agents.nets.kernels.trial import try_kernels
from league.agents.nets.network import Network, NetworkOutput
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.pipeline.backend"


class StepBackend(Protocol):
    """Computes gradients. `FlatOptimizer`, which divides, clips and steps, is the same for all backends.

    Built as `backend(network, objective, config, placement)`; with `options=...` where it declares options.
    """

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        """Add the gradient of the summed loss to the network's gradients; returns the loss of the batch.

        It takes a microbatch from the iterable when it needs it, so that work starts before the last one has arrived.
        """
        ...

    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        """The network's outputs for all rows, without gradient; None in a worker that does not hold the last stage."""
        ...

    def close(self) -> None:
        """Release threads and streams; may be called twice."""
        ...


@dataclass(frozen=True)
class Boundary:
    """The output of a stage: its axes after rows and steps, and its dtype."""

    inner: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Placement:
    """The place of a backend: device, dtype and pipeline.

    Fields:
      dtype: compute type of the forward pass; device: of the parameters.
      worker: place of this process among the workers of its pipeline, from 0.
      pipe_group: the process group of that pipeline; None if the whole network is in this process.
      boundaries: outputs of that pipeline's stages, first to last; empty if the whole network is in this process.
    """

    dtype: torch.dtype
    device: torch.device
    worker: int = 0
    pipe_group: ProcessGroup | None = None
    boundaries: tuple[Boundary, ...] = ()

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """Context of mixed precision for a forward pass in the calling thread."""
        if self.dtype in (torch.float32, torch.float64):
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)


def make_backend(network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> StepBackend:
    """Make the backend that the config names, a registered one or "module:attribute", with its options.

    Transformers in 16-bit numbers on a GPU get kernels of our own if these work there.

    Raises:
      ValueError: there is no such backend, or its options do not fit.
    """
    if placement.dtype in KERNEL_DTYPES and any(isinstance(module, TransformerLayer) for module in network.modules()):
        try_kernels(placement.device)
    build = resolve(config.pipeline.backend_name, BACKENDS, what=PLACE)
    options = options_argument(build, config.pipeline.backend, place=PLACE)
    backend: StepBackend = build(network, objective, config, placement, **options)
    return backend


class SingleBackend:
    """Runs microbatches one by one on one device: gradients of a large batch in the memory of a small one."""

    def __init__(self, network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> None:
        self._network = network
        # A replayed CUDA graph overwrites the outputs of the previous run, so copy them.
        self._overwrites = config.compile_mode == "reduce-overhead"
        if config.compile_mode != "none":
            network.compile(mode=config.compile_mode)
        self._objective = objective
        self._of_network = objective if isinstance(objective, NetworkObjective) else None
        self._placement = placement
        is_exact = placement.dtype == torch.float32 and config.compile_mode == "none"
        self._compiled = VTraceUpdate.of(network, objective) if is_exact else None

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        """As in the protocol."""
        losses = [self._add(microbatch, loss_weights) for microbatch in microbatches]
        return BatchLoss.of(losses, device=self._placement.device)

    @torch.no_grad()
    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        """As in the protocol."""
        outputs = []
        for microbatch in microbatches:
            output = self._forward(microbatch)
            outputs.append(copy_of(output) if self._overwrites else output)
        return join_outputs(outputs)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def _add(self, batch: Batch, loss_weights: LossWeights) -> BatchLoss:
        """Add the gradient of a microbatch; returns its loss without the graph, which may be large."""
        if self._compiled is not None and self._compiled.takes(batch, loss_weights):
            return self._compiled.accumulate(batch, loss_weights)
        loss = self._loss(batch, loss_weights)
        torch.autograd.backward(loss.total)
        return BatchLoss(loss.columns, loss.row_errors)

    def _loss(self, batch: Batch, loss_weights: LossWeights) -> Loss:
        if self._of_network is not None:
            return self._of_network.loss_of(self._forward, batch, loss_weights)
        return self._objective.loss(self._forward(batch), batch, loss_weights)

    def _forward(self, batch: Batch) -> NetworkOutput:
        with self._placement.autocast():
            output: NetworkOutput = self._network(
                batch.obs,
                resets=batch.resets,
                core=batch.core,
                action_mask=batch.action_mask,
                host_resets=batch.host_resets,
            )
        return output


def copy_of(output: NetworkOutput) -> NetworkOutput:
    """A copy of the outputs in new memory."""
    return NetworkOutput(logits=output.logits.clone(), values=output.values.clone(), core=output.core.clone())


def join_outputs(outputs: Sequence[NetworkOutput]) -> NetworkOutput:
    """Concatenate the outputs of several microbatches, in order."""
    if len(outputs) == 1:
        return outputs[0]
    return NetworkOutput(
        logits=torch.cat([output.logits for output in outputs]),
        values=torch.cat([output.values for output in outputs]),
        core=torch.cat([output.core for output in outputs]),
    )
