"""The protocol of objectives, the swap point between algorithms, and their inputs in each update.

Shape letters: B rows, T unroll length. Networks answer batch-major [B, T+1]; losses work time-major [T, B].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from league.agents.learner.algorithms.algorithms import OBJECTIVES, UPDATERS
from league.agents.learner.algorithms.loss_stats import empty_stats
from league.agents.learner.config import DEFAULT_ALGORITHM, LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput
from league.envs.component_choice import kind_of
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.algorithm"

Total = Callable[[Tensor], Tensor]
"""Sums a tensor over all replicas; the identity if there is one."""

Forward = Callable[[Batch], NetworkOutput]
"""Runs the network over unrolls."""


@dataclass(frozen=True)
class LossWeights:
    """The weights that change from update to update.

    Fields:
      entropy_cost: weight of the entropy; teacher_cost: of the KL to the teacher, 0 for none.
      advantage_scale: root mean square by which advantages are divided.
      advantage_limit: larger raw advantages count as this much in the statistics from which the next scale follows.
      update: number of the update, for what an objective does in some of them alone.
    """

    entropy_cost: float
    advantage_scale: float
    teacher_cost: float = 0.0
    advantage_limit: float = math.inf
    update: int = 0


@dataclass(frozen=True)
class Loss:
    """The loss of a microbatch.

    Fields:
      total: summed over its decisions, a scalar to differentiate.
      columns: sums of its terms, see `loss_stats.stack_stats`.
      row_errors: float32 [B], how wrong the network was about each row, by which a replay chooses rows; None where an
        objective has no such measure.
    """

    total: Tensor
    columns: Tensor
    row_errors: Tensor | None = None


@dataclass(frozen=True)
class BatchLoss:
    """The losses of a batch without their graph: columns summed over its microbatches, row_errors [rows] or None."""

    columns: Tensor
    row_errors: Tensor | None = None

    @classmethod
    def of(cls, losses: Sequence[Loss | BatchLoss], *, device: torch.device) -> BatchLoss:
        """Add up the losses of all microbatches in the order of their rows."""
        if not losses:
            return cls(empty_stats(device))
        columns = losses[0].columns
        for loss in losses[1:]:
            columns = columns + loss.columns
        errors = [loss.row_errors.detach() for loss in losses if loss.row_errors is not None]
        return cls(columns, torch.cat(errors) if errors else None)


@dataclass(frozen=True)
class ForwardPasses:
    """Forward-only passes over the whole batch that an objective needs before microbatches are cut.

    Fields:
      current: with the trained weights, for `precomputed`; target: with the target network, for `target_precomputed`.
        The update itself runs the teacher's pass, which is the same for every objective.
    """

    current: bool = False
    target: bool = False


class Objective(Protocol):
    """A loss; holds no state between updates.

    Built as `objective(config, head)`; with `options=...` where it declares options, see `league.envs.plugin_options`.

    Attributes:
      needs_fresh: decisions of too old behaviour policies are masked out, see `max_policy_lag`. False where
        old decisions are as right as new ones, as for Q-learning: then they may be replayed. Read from the class; an
        objective without it needs fresh ones.
      learns_from: further fields of unrolls that it learns from, which the kind of acting must record, see
        `unroll.ASKED`. Read from the class; an objective without it needs none.
    """

    needs_fresh: bool
    learns_from: tuple[str, ...]

    @property
    def epochs(self) -> int:
        """Optimizer steps on one batch."""
        ...

    @property
    def passes(self) -> ForwardPasses:
        """The forward passes that this objective needs."""
        ...

    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """Targets [B, ...] that stay fixed for all microbatches and epochs of this batch; called if `passes.current`.

        Statistics of the whole batch belong here, because those of a microbatch would change the gradient.
        """
        ...

    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """Targets from the target network; called if `passes.target`.

        The network, and so a head with its own layers, holds the target weights during the call.
        """
        ...

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> Loss:
        """The loss of a microbatch.

        Args:
          output: the network on all T+1 observations of `batch`, a microbatch with its precomputed targets.
        """
        ...


@runtime_checkable
class NetworkObjective(Protocol):
    """An objective that runs the network itself; for the backends "single" and "data_parallel"."""

    def loss_of(self, forward: Forward, batch: Batch, loss_weights: LossWeights) -> Loss:
        """As `Objective.loss`, which is not called then. forward: the network over unrolls of any length."""
        ...


def make_objective(config: LearnerConfig, head: Head) -> Objective:
    """Make the objective of `config.algorithm`, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: there is no such objective, or its options do not fit.
    """
    build = _builder(config)
    objective: Objective = build(config, head, **options_argument(build, config.algorithm, place=PLACE))
    return objective


def needs_fresh(config: LearnerConfig) -> bool:
    """True if the objective of `config.algorithm` masks out old decisions. Raises ValueError if there is none."""
    return bool(getattr(_builder(config), "needs_fresh", True))


def learns_from(config: LearnerConfig) -> tuple[str, ...]:
    """The further fields that the objective of `config.algorithm` learns from. Raises ValueError if there is none."""
    return tuple(getattr(_builder(config), "learns_from", ()))


def _builder(config: LearnerConfig) -> Any:
    return resolve(kind_of(config.algorithm, DEFAULT_ALGORITHM), {**OBJECTIVES, **UPDATERS}, what=PLACE)
