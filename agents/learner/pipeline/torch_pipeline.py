"""One worker's stages of a torch.distributed.pipelining pipeline: GPipe, 1F1B or interleaved, across processes.

Shape letters: b rows of one microbatch, T unroll length, S stages, M microbatches, W workers of the pipeline.

The library gets only what every version since 2.9 handles. Between two stages that is one contiguous floating-point
tensor of known shape; the loss is a sum without scaling. Input, keyword and target are the number of the microbatch, by
which everything else (observations, masks, resets, actions) is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import pipelining

from league.agents.learner.algorithms.objective import BatchLoss, LossWeights, Objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.pipeline.stages import Stage, cut_network, even_cut
from league.agents.learner.pipeline_config import LOOPED_SCHEDULES
from league.agents.learner.step.backend import Boundary, Placement, join_outputs
from league.agents.nets.network import Network, NetworkOutput

SCHEDULE_CLASSES = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "interleaved": "ScheduleInterleaved1F1B",
    "interleaved_zero_bubble": "ScheduleInterleavedZeroBubble",
}

FORWARD_ONLY = {False: "ScheduleGPipe", True: "ScheduleLoopedBFS"}
"""Schedule of a pass without gradient, by whether a worker holds several stages."""


class _ContiguousGradient(torch.autograd.Function):
    """The identity with contiguous gradients, which the transport needs and a transposing layer does not give."""

    @staticmethod
    def forward(context: Any, features: Tensor) -> Tensor:
        return features.view_as(features)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        return gradients[0].contiguous()


@dataclass
class _Desk:
    """Data that the stages of this worker look up by the number of the microbatch."""

    microbatches: Sequence[Batch]
    loss_weights: LossWeights | None
    losses: list[BatchLoss]
    outputs: list[NetworkOutput]


class _Wire(nn.Module):
    """A stage with the signature that the library calls."""

    def __init__(self, stage: Stage, placement: Placement, desk: _Desk, *, copy_output: bool) -> None:
        super().__init__()
        self.blocks = stage.modules
        self._stage = stage
        self._placement = placement
        self._desk = desk
        self._copy_output = copy_output

    def forward(self, features: Tensor, *, index: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The next stage's features, or logits and values. index: int64 [1], number of the microbatch."""
        batch = self._desk.microbatches[int(index[0])]
        with self._placement.autocast():
            given = None if self._stage.is_first else _ContiguousGradient.apply(features)  # type: ignore[no-untyped-call]
            result = self._stage.run(given, batch)
        if isinstance(result, Tensor):
            return self._sendable(result)
        if not torch.is_grad_enabled():
            self._desk.outputs.append(result)
        return self._sendable(result.logits), self._sendable(result.values)

    def _sendable(self, tensor: Tensor) -> Tensor:
        # Copy views: a schedule that splits the backward pass detaches outputs in place, which a view does not allow.
        if self._copy_output:
            return tensor.clone(memory_format=torch.contiguous_format)
        # A contiguous tensor with a dimension of one may have any stride there, and torch before 2.13 compares strides.
        return tensor.contiguous().view(-1).view(tensor.shape)


class TorchPipelineBackend:
    """The stages of worker `placement.worker`; every worker of the pipeline makes the same calls with the same rows."""

    def __init__(self, network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> None:
        cut = config.pipeline.stage_cut or even_cut(len(network.blocks), config.pipeline.stages)
        stages = cut_network(network, cut)
        if len(placement.boundaries) != len(stages):
            raise ValueError(f"{len(placement.boundaries)} boundaries are stated for {len(stages)} stages")
        self._boundaries = placement.boundaries
        self._own = stages[placement.worker :: config.pipeline.pipeline_workers]
        self._objective = objective
        self._config = config
        self._placement = placement
        self._desk = _Desk([], None, [], [])
        split = config.pipeline.schedule == "interleaved_zero_bubble"
        self._wires = [_Wire(stage, placement, self._desk, copy_output=split) for stage in self._own]
        self._schedules: dict[tuple[int, int, bool], Any] = {}

    @property
    def holds_last(self) -> bool:
        """True if this worker returns losses and outputs."""
        return self._own[-1].is_last

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        """As in the protocol; zeros in a worker that does not hold the last stage.

        Raises:
          ValueError: there are not exactly `config.microbatches` microbatches.
        """
        parts = self._checked(microbatches)
        self._set(parts, loss_weights)
        losses: list[Tensor] = []
        given: dict[str, Any] = {"target": self._numbers(), "losses": losses} if self.holds_last else {}
        self._run(self._schedule(parts[0], train=True), given)
        return BatchLoss.of(self._desk.losses, device=self._placement.device)

    @torch.no_grad()
    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        parts = self._checked(microbatches)
        self._set(parts, None)
        self._run(self._schedule(parts[0], train=False), {})
        return join_outputs(self._desk.outputs) if self.holds_last else None

    def close(self) -> None:
        """Does nothing: the only resource is the process group, which belongs to the worker."""

    def _checked(self, microbatches: Iterable[Batch]) -> list[Batch]:
        parts = list(microbatches)
        if len(parts) != self._config.microbatches:
            raise ValueError(
                f"the pipeline was given {len(parts)} microbatches, it is set up for {self._config.microbatches}"
            )
        return parts

    def _set(self, parts: list[Batch], loss_weights: LossWeights | None) -> None:
        self._desk.microbatches = parts
        self._desk.loss_weights = loss_weights
        self._desk.losses = []
        self._desk.outputs = []

    def _numbers(self) -> Tensor:
        return torch.arange(self._config.microbatches)

    def _run(self, schedule: Any, given: dict[str, Any]) -> None:
        index = self._numbers()
        # The library sends positional input to the first stage only; the number of each microbatch suffices.
        inputs = (index.float().to(self._placement.device)[:, None],) if self._own[0].is_first else ()
        schedule.step(*inputs, index=index, **given)

    def _schedule(self, microbatch: Batch, *, train: bool) -> Any:
        """The schedule for this size of microbatch: shapes are frozen at a schedule's first step."""
        rows, steps = microbatch.num_rows, int(microbatch.resets.shape[1])
        key = (rows, steps, train)
        if key not in self._schedules:
            self._schedules[key] = self._build(rows, steps, train=train)
        return self._schedules[key]

    def _build(self, rows: int, steps: int, *, train: bool) -> Any:
        looped = self._config.pipeline.schedule in LOOPED_SCHEDULES
        name = SCHEDULE_CLASSES[self._config.pipeline.schedule] if train else FORWARD_ONLY[looped]
        stages = [
            self._library_stage(wire, stage, rows, steps) for wire, stage in zip(self._wires, self._own, strict=True)
        ]
        options: dict[str, Any] = {"n_microbatches": self._config.microbatches, "scale_grads": False}
        if train:
            options["loss_fn"] = self._loss
        return getattr(pipelining, name)(stages if looped else stages[0], **options)

    def _library_stage(self, wire: _Wire, stage: Stage, rows: int, steps: int) -> pipelining.PipelineStage:
        def example(boundary: Boundary) -> Tensor:
            leading = (rows * steps,) if stage.flat else (rows, steps)
            shape = (*leading, *boundary.inner)
            return torch.empty(shape, dtype=boundary.dtype, device=self._placement.device, requires_grad=True)

        given = torch.empty(1, 1, device=self._placement.device)
        if not stage.is_first:
            given = example(self._boundaries[stage.index - 1])
        answers: tuple[Tensor, ...]
        if stage.is_last:
            logits = self._boundaries[-1]
            answers = (
                torch.empty((rows, steps, *logits.inner), dtype=logits.dtype, requires_grad=True),
                torch.empty((rows, steps), dtype=logits.dtype, requires_grad=True),
            )
        else:
            answers = (example(self._boundaries[stage.index]),)
        return pipelining.PipelineStage(
            wire,
            stage.index,
            stage.num_stages,
            self._placement.device,
            input_args=(given,),
            output_args=answers,
            group=self._placement.pipe_group,
        )

    def _loss(self, output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        assert self._desk.loss_weights is not None, "a loss is computed in training only"
        batch = self._desk.microbatches[int(target[0])]
        logits, values = output
        loss = self._objective.loss(NetworkOutput(logits, values, batch.core), batch, self._desk.loss_weights)
        self._desk.losses.append(BatchLoss(loss.columns, loss.row_errors))
        return loss.total
