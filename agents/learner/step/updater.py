"""One process's share of an update: a backend for the gradients, an update mode between replicas, the shared tail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.learner.algorithms.kl_terms import teacher_constants
from agents.learner.algorithms.loss_stats import LossSums, sums_of
from agents.learner.algorithms.objective import Coefficients, Objective
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch, Stager, join
from agents.learner.errors import StageHungError
from agents.learner.step.backend import Placement, StepBackend
from agents.learner.step.optimizer import Arrays, Tail
from agents.learner.step.replica_sync import UpdateMode, total_over
from agents.nets.heads import HeadsBlock
from agents.nets.separate_value import TwinHeads
from agents.nets.value_scale import ValueScale
from agents.unroll.unroll import Unrolls


@dataclass(frozen=True)
class UpdateOrder:
    """What is to be done with a batch.

    Fields:
      learning_rate: step size.
      coefficients: of the loss.
      oldest_version: decisions of older weights are not learnt from.
      microbatches_per_block: into how many microbatches each block of rows is cut.
    """

    learning_rate: float
    coefficients: Coefficients
    oldest_version: int
    microbatches_per_block: int


@dataclass(frozen=True)
class UpdateResult:
    """What was done.

    Fields:
      sums: over the whole batch, in the last epoch.
      gradient_norm: before clipping, in the last epoch; not finite where that epoch was left out.
      optimizer_steps: epochs that changed the weights; 0 where there was no decision to learn from.
    """

    sums: LossSums
    gradient_norm: float
    optimizer_steps: int


class Updater(Protocol):
    """Holds weights and optimizer and changes them. In this process, or spread over several."""

    def update(self, blocks: Iterable[Unrolls], order: UpdateOrder) -> UpdateResult:
        """Learn from blocks of rows; an epoch whose norm is not finite changes nothing and is the last.

        Raises:
          StageError: a worker died or hung; `load` starts the workers again.
        """
        ...

    def weights(self) -> NDArray[np.float32]:
        """float32 [P], a copy, in the order of the whole network's layout."""
        ...

    def save(self) -> Arrays:
        """Weights, optimizer and slow copy as plain arrays that do not depend on how the work is spread."""
        ...

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on from `save`d arrays; of "values" alone, with a fresh optimizer.

        "teacher" among them is float32 [P], its weights: they stay until others are given, and are never saved.
        """
        ...

    def close(self) -> None:
        """Release processes, threads and streams; may be called twice."""
        ...


class LocalUpdater:
    """The updater of one process: the only one of a small run, or one worker of a group.

    Args:
      backend, objective, tail, mode: the parts.
      heads: the network's last block, whose value may be normalised and whose head says what a teacher's answers mean;
        of no account where another worker trains it.
      placement: where the rows go.
      config: settings.
    """

    def __init__(
        self,
        *,
        backend: StepBackend,
        objective: Objective,
        tail: Tail,
        heads: nn.Module,
        mode: UpdateMode,
        placement: Placement,
        config: LearnerConfig,
    ) -> None:
        self._backend = backend
        self._objective = objective
        self._tail = tail
        self._heads = heads
        self._mode = mode
        self._placement = placement
        self._config = config
        self._stager = Stager(placement.device)

    def update(self, blocks: Iterable[Unrolls], order: UpdateOrder) -> UpdateResult:
        """As in the protocol."""
        microbatches: Iterable[Batch] = self._microbatches(blocks, order)
        if self._config.epochs > 1 or self._wants_constants(order):
            microbatches = self._with_constants(list(microbatches), order)
        sums, norm, optimizer_steps = LossSums(), 0.0, 0
        for _ in range(self._config.epochs):
            sums, norm = self._step(microbatches, order)
            if not math.isfinite(norm):
                break
            optimizer_steps += sums.steps > 0
        return UpdateResult(sums, norm, optimizer_steps)

    def gradients(self, blocks: Iterable[Unrolls], order: UpdateOrder) -> LossSums:
        """Leave the summed gradient over all replicas in the tail, without a step."""
        microbatches = list(self._microbatches(blocks, order))
        if self._wants_constants(order):
            microbatches = self._with_constants(microbatches, order)
        return sums_of(self._accumulate(microbatches, order))

    def gradient_vector(self) -> NDArray[np.float32]:
        """float32 [P], a copy of what `gradients` left."""
        vector: NDArray[np.float32] = self._tail.gradients.cpu().numpy().copy()
        return vector

    def weights(self) -> NDArray[np.float32]:
        """As in the protocol; of a worker, its own parameters."""
        vector: NDArray[np.float32] = self._tail.values.detach().cpu().numpy().copy()
        return vector

    def save(self) -> Arrays:
        """As in the protocol; of a worker, its own parameters."""
        return self._tail.save()

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """As in the protocol; of a worker, its own parameters."""
        self._tail.load(saved)

    def close(self) -> None:
        """Release the backend."""
        self._backend.close()

    def _step(self, microbatches: Iterable[Batch], order: UpdateOrder) -> tuple[LossSums, float]:
        """One epoch: sums over the batch, and the gradient's norm before clipping."""
        columns = self._accumulate(microbatches, order)
        sums = sums_of(columns)
        norm = self._tail.step(
            count=sums.steps,
            learning_rate=order.learning_rate,
            total=lambda squares: total_over(squares, self._placement.pipe_group),
        )
        if math.isfinite(norm):
            self._normalise_values(sums)
            self._mode.after_step(self._tail.values)
        return sums, norm

    def _normalise_values(self, sums: LossSums) -> None:
        """After the step, by the same sums in every worker, so that replicas stay alike.

        Targets whose squares overflow are left out: infinite moments would stay so, and make every value NaN.
        """
        heads = self._heads
        if self._config.value_normalisation == "popart" and sums.steps and math.isfinite(sums.squared_target):
            assert isinstance(heads, (HeadsBlock, TwinHeads)) and isinstance(heads.value_activation, ValueScale)
            layer, row = heads.value_row()
            mean, second_moment = sums.target / sums.steps, sums.squared_target / sums.steps
            heads.value_activation.update(
                layer, row, mean=mean, second_moment=second_moment, rate=self._config.value_rate
            )

    def _accumulate(self, microbatches: Iterable[Batch], order: UpdateOrder) -> Tensor:
        """Columns over all workers; the gradients are left in the tail."""
        self._tail.gradients.zero_()
        try:
            columns = self._backend.accumulate(microbatches, order.coefficients)
        except StageHungError:
            self._tail.replace_parameters()
            raise
        self._mode.before_step(self._tail.gradients)
        return self._mode.total(total_over(columns, self._placement.pipe_group))

    def _microbatches(self, blocks: Iterable[Unrolls], order: UpdateOrder) -> Iterator[Batch]:
        batches = (self._stager.batch(block, oldest_version=order.oldest_version) for block in blocks)
        return itertools.chain.from_iterable(batch.microbatches(order.microbatches_per_block) for batch in batches)

    def _wants_constants(self, order: UpdateOrder) -> bool:
        passes = self._objective.passes
        return passes.current or passes.slow or order.coefficients.teacher_cost > 0

    @torch.no_grad()
    def _with_constants(self, microbatches: list[Batch], order: UpdateOrder) -> list[Batch]:
        """The microbatches with what the objective fixes for the whole batch; as they are where it fixes nothing."""
        passes, whole = self._objective.passes, join(microbatches)
        constants: dict[str, Tensor] = {}
        current = self._backend.evaluate(microbatches) if passes.current else None
        if current is not None:
            constants.update(self._objective.constants(whole, current=current, total=self._mode.total))
        if passes.slow:
            with self._tail.slow_weights():
                slow = self._backend.evaluate(microbatches)
                if slow is not None:
                    constants.update(self._objective.slow_constants(whole, slow=slow))
        if order.coefficients.teacher_cost:
            constants.update(self._taught(microbatches, whole))
        if not constants:
            return microbatches
        size = microbatches[0].num_rows
        return [
            batch.with_constants({name: tensor[at * size : (at + 1) * size] for name, tensor in constants.items()})
            for at, batch in enumerate(microbatches)
        ]

    def _taught(self, microbatches: list[Batch], whole: Batch) -> Mapping[str, Tensor]:
        """What the teacher says, its memory empty at the start of every unroll; nothing in a worker without heads."""
        blank = [replace(batch, core=torch.zeros_like(batch.core)) for batch in microbatches]
        with self._tail.teacher_weights():
            teacher = self._backend.evaluate(blank)
            if teacher is None:
                return {}
            assert isinstance(self._heads, (HeadsBlock, TwinHeads))
            return teacher_constants(self._heads.head, teacher, whole)
