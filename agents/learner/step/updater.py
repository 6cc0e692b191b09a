"""Updates in one process: a backend for the gradients, an update mode between replicas, then the optimizer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from league.agents.learner.algorithms.kl_terms import teacher_targets
from league.agents.learner.algorithms.loss_stats import LossStats, sums_of
from league.agents.learner.algorithms.objective import BatchLoss, LossWeights, Objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Ahead, Batch, Stager, join
from league.agents.learner.errors import StageHungError
from league.agents.learner.replicas.replica_group import total_over
from league.agents.learner.replicas.update_mode import StepResult, UpdateMode, load_mode, mode_arrays
from league.agents.learner.step.backend import Placement, StepBackend
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.nets.heads import HeadsBlock
from league.agents.nets.popart import ValueScale, moment_rate
from league.agents.nets.seat_groups import SeatGroupHeads
from league.agents.nets.separate_value import TwinHeads
from league.agents.restart_state import Arrays
from league.agents.torch_runtime import with_own_defaults
from league.agents.unroll.device_unrolls import AnyRows, AnyUnrolls
from league.agents.unroll.episodes import SeatEpisodes


@dataclass(frozen=True)
class UpdateInputs:
    """The arguments of one update.

    Fields:
      learning_rate: step size.
      loss_weights: of the loss.
      oldest_version: decisions of older weights are not learnt from.
      microbatches_per_block: number of microbatches cut from each block of rows.
    """

    learning_rate: float
    loss_weights: LossWeights
    oldest_version: int
    microbatches_per_block: int


@dataclass(frozen=True)
class GroupReport:
    """Batches, lags and losses of replicas on clocks of their own since the last update.

    Fields:
      batches: that have finished. lags: of applied gradients, in steps of the server since their weights were fetched.
      dropped: gradients that were discarded, as stale or as outliers.
      lost: a sentence for each member that was lost.
    """

    batches: int = 0
    lags: tuple[int, ...] = ()
    dropped: int = 0
    lost: tuple[str, ...] = ()

    @property
    def lag_mean(self) -> float:
        """Of the lags; 0 if there are none."""
        return sum(self.lags) / max(len(self.lags), 1)


@dataclass(frozen=True)
class UpdateResult:
    """The result of one update.

    Fields:
      stats: over the whole batch, in the last epoch.
      gradient_norm: before clipping, in the last epoch; not finite if that epoch was skipped.
      optimizer_steps: epochs that changed the weights; 0 if there was no decision to learn from.
      row_errors: float32 [rows], see `objective.Loss`, of the last epoch; None where the objective has none.
      skipped_replicas: that left the last epoch out because their own gradient was not finite.
      bytes_sent: between replicas, in all epochs.
      unshared: decisions that the weights of this replica alone hold, see `StepResult`.
      group: of replicas on clocks of their own.
    """

    stats: LossStats
    gradient_norm: float
    optimizer_steps: int
    row_errors: NDArray[np.float32] | None = None
    skipped_replicas: int = 0
    bytes_sent: int = 0
    unshared: float = 0.0
    group: GroupReport = field(default_factory=GroupReport)


class Updater(Protocol):
    """Holds weights and optimizer and updates them, in this process or distributed over several."""

    def update(self, blocks: Iterable[AnyRows], inputs: UpdateInputs, *, ahead: Ahead | None = None) -> UpdateResult:
        """Learn from blocks of rows; an epoch with a norm that is not finite changes nothing and is the last.

        Args:
          ahead: called once the device has its work, so that the next batch can be copied meanwhile.
        Raises:
          StageError: a worker died or hung; `load` restarts the workers.
        """
        ...

    def weights(self) -> NDArray[np.float32]:
        """float32 [P], a copy, in the order of the whole network's layout."""
        ...

    def save(self) -> Arrays:
        """Weights, their average, optimizer and target network as plain arrays, whatever the number of workers."""
        ...

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from the arrays of `save`; with those of `weights_alone`, the optimizer is reset.

        The weights of a teacher among them stay until replaced, and are never saved.
        """
        ...

    def close(self) -> None:
        """Release processes, threads and streams; may be called twice."""
        ...


class LocalUpdater:
    """The updater of one process: the only one of a small run, or one worker of a group.

    Args:
      backend, objective, optimizer, mode: the components.
      heads: the network's last block, with the value to normalise and the head that interprets a teacher's outputs;
        unused if another worker trains it.
      placement: device of the rows.
      config: settings.
    """

    def __init__(
        self,
        *,
        backend: StepBackend,
        objective: Objective,
        optimizer: FlatOptimizer,
        heads: nn.Module,
        mode: UpdateMode,
        placement: Placement,
        config: LearnerConfig,
    ) -> None:
        self._backend = backend
        self._objective = objective
        self._optimizer = optimizer
        self._heads = heads
        self._mode = mode
        self._placement = placement
        self._config = config
        self._stager = Stager(placement.device)

    @with_own_defaults
    def update(self, blocks: Iterable[AnyRows], inputs: UpdateInputs, *, ahead: Ahead | None = None) -> UpdateResult:
        """As in the protocol."""
        microbatches: Iterable[Batch] = self._microbatches(blocks, inputs)
        if self._objective.epochs > 1 or self._wants_precomputed(inputs):
            microbatches = self._with_precomputed(list(microbatches), inputs)
        step, optimizer_steps, bytes_sent, errors = StepResult(LossStats(), 0.0), 0, 0, None
        for epoch in range(self._objective.epochs):
            step, errors = self._step(microbatches, inputs, ahead=ahead if epoch == 0 else None)
            bytes_sent += step.bytes_sent
            if not math.isfinite(step.norm):
                break
            optimizer_steps += step.stats.steps > 0
        return UpdateResult(
            step.stats,
            step.norm,
            optimizer_steps,
            row_errors=None if errors is None else errors.float().cpu().numpy(),
            skipped_replicas=step.skipped,
            bytes_sent=bytes_sent,
            unshared=step.unshared,
        )

    @with_own_defaults
    def gradients(self, blocks: Iterable[AnyRows], inputs: UpdateInputs) -> LossStats:
        """Compute the summed gradient over all replicas without a step."""
        microbatches = list(self._microbatches(blocks, inputs))
        if self._wants_precomputed(inputs):
            microbatches = self._with_precomputed(microbatches, inputs)
        loss = self._accumulate(microbatches, inputs)
        self._optimizer.gradients.copy_(self._mode.total(self._optimizer.gradients))
        return sums_of(self._mode.total(loss.columns))

    def gradient_vector(self) -> NDArray[np.float32]:
        """float32 [P], a copy of the result of `gradients`."""
        vector: NDArray[np.float32] = self._optimizer.gradients.cpu().numpy().copy()
        return vector

    def weights(self) -> NDArray[np.float32]:
        """As in the protocol; of a worker, its own parameters."""
        vector: NDArray[np.float32] = self._mode.publish(self._optimizer.values).detach().cpu().numpy().copy()
        return vector

    def save(self) -> Arrays:
        """As in the protocol; of a worker, its own parameters, as this replica has them."""
        return {**self._optimizer.save(), **mode_arrays(self._mode)}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """As in the protocol; of a worker, its own parameters."""
        self._optimizer.load(saved)
        load_mode(self._mode, self._optimizer.values, saved)

    def close(self) -> None:
        """Release the backend."""
        self._backend.close()

    def _step(
        self, microbatches: Iterable[Batch], inputs: UpdateInputs, *, ahead: Ahead | None
    ) -> tuple[StepResult, Tensor | None]:
        """Run one epoch; returns the result of its step, and the errors of this replica's rows."""
        loss = self._accumulate(microbatches, inputs)
        if ahead is not None:
            self._stager.copy_ahead(ahead)
        step = self._mode.step(self._optimizer, loss.columns, learning_rate=inputs.learning_rate)
        if math.isfinite(step.norm):
            if step.stats.steps:
                self._optimizer.follow(self._mode.publish(self._optimizer.values))
            self._normalise_values(step.stats)
        return step, loss.row_errors

    def _normalise_values(self, stats: LossStats) -> None:
        """Update the value normalisation after the step, from sums equal in every worker, so that replicas stay equal.

        Targets whose squares overflow are skipped: infinite moments would stay infinite and make every value NaN.
        """
        heads = self._heads
        if self._config.value_normalisation == "popart" and stats.steps and math.isfinite(stats.squared_target):
            mean, second_moment = stats.target / stats.steps, stats.squared_target / stats.steps
            rate = moment_rate(self._config.value_rate, steps=self._optimizer.steps)
            for block in heads.members if isinstance(heads, SeatGroupHeads) else (heads,):
                assert isinstance(block, (HeadsBlock, TwinHeads)) and isinstance(block.value_activation, ValueScale)
                layer, row = block.value_row()
                block.value_activation.update(layer, row, mean=mean, second_moment=second_moment, rate=rate)

    def _accumulate(self, microbatches: Iterable[Batch], inputs: UpdateInputs) -> BatchLoss:
        """Accumulate the gradients of this replica; returns its loss, the columns summed over its stages."""
        self._optimizer.gradients.zero_()
        try:
            loss = self._backend.accumulate(microbatches, inputs.loss_weights)
        except StageHungError:
            self._optimizer.replace_parameters()
            raise
        return replace(loss, columns=total_over(loss.columns, self._placement.pipe_group))

    def _microbatches(self, blocks: Iterable[AnyRows], inputs: UpdateInputs) -> Iterator[Batch]:
        oldest = inputs.oldest_version
        batches = (self._stager.batch(_unrolls(block), oldest_version=oldest) for block in blocks)
        return itertools.chain.from_iterable(batch.microbatches(inputs.microbatches_per_block) for batch in batches)

    def _wants_precomputed(self, inputs: UpdateInputs) -> bool:
        passes = self._objective.passes
        return passes.current or passes.target or inputs.loss_weights.teacher_cost > 0

    @torch.no_grad()
    def _with_precomputed(self, microbatches: list[Batch], inputs: UpdateInputs) -> list[Batch]:
        """Add the targets that the objective precomputes for the whole batch to its microbatches."""
        passes, whole = self._objective.passes, join(microbatches)
        precomputed: dict[str, Tensor] = {}
        current = self._backend.evaluate(microbatches) if passes.current else None
        if current is not None:
            precomputed.update(self._objective.precomputed(whole, current=current, total=self._mode.total))
        if passes.target:
            with self._optimizer.target_weights():
                target = self._backend.evaluate(microbatches)
                if target is not None:
                    precomputed.update(self._objective.target_precomputed(whole, target=target))
        if inputs.loss_weights.teacher_cost:
            precomputed.update(self._teacher_targets(microbatches, whole))
        if not precomputed:
            return microbatches
        size = microbatches[0].num_rows
        return [
            batch.with_precomputed({name: tensor[at * size : (at + 1) * size] for name, tensor in precomputed.items()})
            for at, batch in enumerate(microbatches)
        ]

    def _teacher_targets(self, microbatches: list[Batch], whole: Batch) -> Mapping[str, Tensor]:
        """The teacher's targets, its memory reset at the start of every unroll; empty in a worker without heads."""
        blank = [replace(batch, core=torch.zeros_like(batch.core)) for batch in microbatches]
        with self._optimizer.teacher_weights():
            teacher = self._backend.evaluate(blank)
            if teacher is None:
                return {}
            assert isinstance(self._heads, (HeadsBlock, TwinHeads, SeatGroupHeads))
            return teacher_targets(self._heads.head, teacher, whole)


def _unrolls(rows: AnyRows) -> AnyUnrolls:
    assert not isinstance(rows, SeatEpisodes), "episodes are for updaters without gradients"
    return rows
