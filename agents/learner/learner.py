"""The learner of one player: turns a batch of unrolls into the next version of its weights.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.algorithms.objective import LossWeights, needs_fresh
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Ahead
from league.agents.learner.data.intake import Intake, quantile
from league.agents.learner.errors import NonFiniteError, ReplicaLostError, StageError
from league.agents.learner.evolution.evolution_updater import Evolving
from league.agents.learner.step.advantage_scale import AdvantageScale
from league.agents.learner.step.updater import GroupReport, UpdateInputs, Updater, UpdateResult
from league.agents.restart_state import (
    Arrays,
    Counters,
    counters_in,
    restart_state,
    scales_in,
    weights_alone,
    with_teacher,
)
from league.agents.unroll.device_unrolls import AnyRows
from league.agents.weights import Layout, Weights, WeightsError, require_finite

KEEP_GOOD_EVERY = 50
"""Updates between copies of a finite state to roll back to."""

EVERY_VERSION = int(np.iinfo(np.int32).min)
"""Oldest version to learn from where age does not matter."""

MAX_RESTARTS_IN_A_ROW = 3
"""Lost workers in a row after which the learner gives up: a permanent cause will not go away by itself."""


@dataclass(frozen=True)
class UpdateReport:
    """The results of one update; means are per learnt-from decision.

    Fields:
      version: after the update.
      trained_steps: decisions learnt from since the start, each once; sampled_steps: each as often as it was learnt
        from, which is more where decisions are replayed.
      steps, stale_steps: decisions of this batch learnt from, and left out because they were too old.
      loss_policy, loss_value, entropy, kl, rho_clip_fraction: means. effective_sample_fraction: in (0, 1].
      gradient_norm: before clipping; skipped: True if the update was not finite, or a worker was lost. Earlier epochs
        of the same batch keep their effect, under a new version.
      lag_mean, lag_p95, lag_max: age of the decisions in updates.
      learning_rate, entropy_cost: in force.
      loss_extra: mean of the optional terms, weighted; teacher_kl: KL(teacher || policy), 0 if it has no weight.
      waited_s, update_s: seconds spent waiting for rows, and in the whole call.
      skipped_replicas: that left this update out because their own gradient was not finite.
      sent_bytes: weights and gradients between replicas, by all of them.
      group: of replicas on clocks of their own.
    """

    version: int
    trained_steps: int
    steps: int
    stale_steps: int
    loss_policy: float
    loss_value: float
    entropy: float
    kl: float
    rho_clip_fraction: float
    effective_sample_fraction: float
    gradient_norm: float
    skipped: bool
    lag_mean: float
    lag_p95: float
    lag_max: int
    learning_rate: float
    entropy_cost: float
    loss_extra: float = 0.0
    teacher_kl: float = 0.0
    waited_s: float = 0.0
    update_s: float = 0.0
    skipped_replicas: int = 0
    sent_bytes: int = 0
    sampled_steps: int = 0
    group: GroupReport = field(default_factory=GroupReport)


class Learner:
    """Counters, scales and the last good state of one player, around an updater that holds its weights.

    Args:
      updater: changes weights.
      layout: of the whole network.
      config: settings.
      teacher: float32 [P], weights of the teacher of `config.teacher_cost`; the updater has them.
      clock: seconds, for the times in the reports.

    Attributes:
      row_errors: float32 [rows] of the newest update, see `objective.Loss`; None where there are none.
    """

    def __init__(
        self,
        updater: Updater,
        layout: Layout,
        config: LearnerConfig,
        *,
        teacher: NDArray[np.float32] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._updater = updater
        self._layout = layout
        self._config = config
        self._teacher = teacher
        self._clock = clock
        self._needs_fresh = needs_fresh(config)
        self.row_errors: NDArray[np.float32] | None = None
        self.version = 0
        self.trained_steps = 0
        self.sampled_steps = 0
        self.skipped_updates = 0
        self.restarts = 0
        self._scale = AdvantageScale()
        self._bad_in_a_row = 0
        self._restarts_in_a_row = 0
        self._shown = LossStats(), 0.0
        self._keep_good()

    def update(self, unrolls: AnyRows, *, budget_fraction: float) -> UpdateReport:
        """Learn from `config.batch_rows` unrolls.

        Args:
          unrolls: the batch.
          budget_fraction: fraction of the budget spent, in [0, 1]; schedules read it.
        Raises:
          NonFiniteError: `rollback_after` updates in a row were not finite, twice over without a good one in between.
          StageError: a worker was lost in `MAX_RESTARTS_IN_A_ROW` updates in a row.
        """
        return self._update([unrolls], budget_fraction=budget_fraction, microbatches_per_block=self._config.pieces)

    def update_stream(
        self,
        blocks: Iterable[AnyRows],
        *,
        budget_fraction: float,
        threads: int = 1,
        ahead: Ahead | None = None,
        fresh_steps: int | None = None,
    ) -> UpdateReport:
        """Learn from a batch given as blocks of equally many rows, each cut into a microbatch for each thread.

        Work on a block starts when the iterable hands it over. Same gradient as `update` on all rows together.

        Args:
          threads: that learn from a block at the same time; their number divides its rows.
          ahead: gives the first block of the next batch, which a GPU is sent while it learns from this one. Its rows
            must not change until the next update has returned.
          fresh_steps: decisions that count as trained with this update, for rows that are learnt from more than once;
            None for all decisions of the batch.
        """
        return self._update(
            blocks,
            budget_fraction=budget_fraction,
            microbatches_per_block=threads,
            ahead=ahead,
            fresh_steps=fresh_steps,
        )

    def publish(self) -> Weights:
        """The newest weights, which nobody may write to. Raises WeightsError if one is not finite."""
        try:
            vector = self._updater.weights()
        except StageError as error:
            self._restart(error)
            vector = self._updater.weights()
        require_finite(vector)
        vector.setflags(write=False)
        weights = Weights(vector=vector, layout=self._layout, version=self.version)
        return self._updater.published(weights) if isinstance(self._updater, Evolving) else weights

    def reconfigure(self, config: LearnerConfig) -> None:
        """Use these rates, costs and limits from the next update on; batch, network and objective stay as built."""
        self._config = config

    def reset(self, weights: Weights) -> None:
        """Restart from given weights with a new optimizer and new scales; step counts continue.

        The version increases by one, so that unrolls of the old policy differ from those of the new one.

        Raises:
          WeightsError: the layout differs.
        """
        self._take_over(weights)
        self.version += 1

    def load_weights(self, weights: Weights, *, trained_steps: int) -> None:
        """Continue from published weights and their version without a restart state: new optimizer and new scales.

        Raises:
          WeightsError: the layout differs.
        """
        self._take_over(weights)
        self.version, self.trained_steps, self.sampled_steps = weights.version, trained_steps, trained_steps
        self._good_steps = trained_steps, trained_steps

    def save(self) -> Arrays:
        """Restart state as plain arrays: weights, their average, optimizer moments, counters, running scales."""
        try:
            state = self._updater.save()
        except StageError as error:
            self._restart(error)
            state = self._updater.save()
        counters = Counters(
            self.version, self.trained_steps, self.skipped_updates, self._bad_in_a_row, self.sampled_steps
        )
        return restart_state(state, counters, self._scale.save())

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from the arrays of `save`.

        Raises:
          ValueError: the arrays are for a network of another size.
        """
        self._load(saved)
        counters = counters_in(saved)
        self.version, self.trained_steps = counters.version, counters.trained_steps
        self.sampled_steps = counters.sampled_steps
        self.skipped_updates, self._bad_in_a_row = counters.skipped_updates, counters.bad_in_a_row
        self._scale.load(scales_in(saved))
        self._keep_good()

    def close(self) -> None:
        """Release the updater; may be called twice."""
        self._updater.close()

    def _update(
        self,
        blocks: Iterable[AnyRows],
        *,
        budget_fraction: float,
        microbatches_per_block: int,
        ahead: Ahead | None = None,
        fresh_steps: int | None = None,
    ) -> UpdateReport:
        config, start = self._config, self._clock()
        inputs = UpdateInputs(
            learning_rate=config.learning_rate_at(budget_fraction),
            loss_weights=LossWeights(
                config.entropy_cost_at(budget_fraction),
                self._advantage_scale(),
                config.teacher_cost_at(budget_fraction),
                self._scale.limit,
                self.version,
            ),
            oldest_version=self.version - config.max_policy_lag if self._needs_fresh else EVERY_VERSION,
            microbatches_per_block=microbatches_per_block,
        )
        intake = Intake(blocks, version=self.version, clock=self._clock)
        try:
            result = self._updater.update(intake, inputs, ahead=ahead)
            self._restarts_in_a_row = 0
        except StageError as error:
            self._restart(error)
            result = UpdateResult(LossStats(), math.nan, 0)
        else:
            self._count_update(result, fresh_steps)
        self.row_errors = result.row_errors
        return self._report(result, inputs, intake, seconds=self._clock() - start)

    def _report(self, result: UpdateResult, inputs: UpdateInputs, intake: Intake, *, seconds: float) -> UpdateReport:
        ages = intake.ages()
        if result.group.batches or not self._config.pipeline.is_free:
            self._shown = result.stats, result.gradient_norm  # else none has finished since: the last ones are shown
        stats, norm = self._shown
        steps = max(stats.steps, 1.0)
        return UpdateReport(
            version=self.version,
            trained_steps=self.trained_steps,
            steps=int(result.stats.steps) if math.isfinite(result.stats.steps) else 0,
            stale_steps=self._num_stale(ages),
            loss_policy=stats.policy / steps,
            loss_value=stats.value / steps,
            entropy=stats.entropy / steps,
            kl=stats.kl / steps,
            rho_clip_fraction=stats.rho_clipped / steps,
            effective_sample_fraction=stats.rho**2 / (steps * stats.squared_rho) if stats.squared_rho else 0.0,
            gradient_norm=norm,
            skipped=not math.isfinite(result.gradient_norm),
            lag_mean=int(np.add.reduce(ages, dtype=np.int64)) / max(ages.size, 1),
            lag_p95=quantile(ages, 0.95),
            lag_max=int(ages[-1]) if ages.size else 0,
            learning_rate=inputs.learning_rate,
            entropy_cost=inputs.loss_weights.entropy_cost,
            loss_extra=stats.auxiliary / steps,
            teacher_kl=stats.teacher_kl / steps,
            waited_s=intake.waited_s,
            update_s=seconds,
            skipped_replicas=result.skipped_replicas,
            sent_bytes=result.bytes_sent,
            sampled_steps=self.sampled_steps,
            group=result.group,
        )

    def _num_stale(self, ages: NDArray[np.int32]) -> int:
        return ages.size - int(ages.searchsorted(self._config.max_policy_lag, "right")) if self._needs_fresh else 0

    def _advantage_scale(self) -> float:
        return max(self._scale.value, self._config.advantage_floor) if self._config.normalise_advantages else 1.0

    def _count_update(self, result: UpdateResult, fresh_steps: int | None) -> None:
        """Count the update. If no epoch stepped, version and scale stay the same, as the weights do."""
        finite, stats = math.isfinite(result.gradient_norm), result.stats
        if result.optimizer_steps:
            self.version += 1
            sampled = int(stats.steps) if math.isfinite(stats.steps) else 0
            self.sampled_steps += sampled
            self.trained_steps += sampled if fresh_steps is None else fresh_steps
        if not finite:
            self.skipped_updates += 1
            self._bad_in_a_row += 1
            if self._bad_in_a_row % self._config.rollback_after == 0:
                self._roll_back()
        elif result.optimizer_steps:
            self._bad_in_a_row = 0
            self._scale.update(stats.squared_advantage / stats.steps)
            if self.version % KEEP_GOOD_EVERY == 0:
                self._keep_good()

    def _keep_good(self) -> None:
        """Copy the present state, which is finite, for a later rollback."""
        self._good, self._good_scale = self._updater.save(), self._scale.save()
        self._good_steps = self.trained_steps, self.sampled_steps

    def _roll_back(self) -> None:
        if self._bad_in_a_row >= 2 * self._config.rollback_after:
            raise NonFiniteError(
                f"{self._bad_in_a_row} updates in a row had a gradient that is not finite, also from the last good "
                "state: look at the rewards and observations of the env, then lower learner.learning_rate"
            )
        self._return_to_good()

    def _restart(self, error: StageError) -> None:
        """Restart lost workers from the weights of those that survived, else from the last good state."""
        self.restarts += 1
        self.skipped_updates += 1
        self._restarts_in_a_row += 1
        if self._restarts_in_a_row >= MAX_RESTARTS_IN_A_ROW:
            raise error
        if isinstance(error, ReplicaLostError):
            self._load(error.saved)
            self.version += 1
            self.trained_steps -= error.lost_steps
            self.sampled_steps -= error.lost_steps
        else:
            self._return_to_good()

    def _take_over(self, weights: Weights) -> None:
        if weights.layout != self._layout:
            raise WeightsError(
                f"the weights ({weights.layout.size} numbers) are for another network ({self._layout.size})"
            )
        self._load(weights_alone(weights.vector))
        self._scale = AdvantageScale()
        self._bad_in_a_row = 0
        self._keep_good()

    def _return_to_good(self) -> None:
        """Load the last good state under the next version, so that no version means two sets of weights.

        What was learnt since then is not in the weights any more, and does not count.
        """
        self._load(self._good)
        self._scale.load(self._good_scale)
        self.trained_steps, self.sampled_steps = self._good_steps
        self.version += 1

    def _load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Load arrays into the updater, with the teacher, which restarted workers no longer have."""
        self._updater.load(with_teacher(saved, self._teacher))
