"""Update modes: how the replicas of a network agree on its weights. One step over one flat vector is all they decide.

Shape letters: P parameters held here, K columns of `LossStats`, R replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.learner.algorithms.algorithms import UPDATE_MODES
from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.pipeline_config import DEFAULT_UPDATE_MODE
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.restart_state import MODE_NUMBER, MODE_VECTOR, Arrays
from league.envs.component_choice import Component, kind_of
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.pipeline.update_mode"


class SteppedVector(Protocol):
    """The weights of this replica, their gradient, and the optimizer that steps with it: a `FlatOptimizer`.

    Fields:
      values: float32 [P], the live weights. gradients: float32 [P], the sum over this replica's decisions.
    """

    @property
    def values(self) -> Tensor: ...

    @property
    def gradients(self) -> Tensor: ...

    def squared_norm(self) -> Tensor:
        """float32 [1], of the gradients here, over all stages of this replica; not read yet."""
        ...

    def clip(self, *, count: float, squared_norm: float) -> float:
        """Divide the gradients by `count` and clip their norm, without a step; returns the norm before clipping."""
        ...

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        """Divide the gradients by `count`, clip their norm, and step; returns the norm before clipping."""
        ...


@dataclass(frozen=True)
class StepResult:
    """The result of one step.

    Fields:
      stats: sums over the decisions that the step learnt from, of all replicas that made it together.
      norm: of the gradient that was stepped with, before clipping: the mean over replicas that step alone. Not finite
        if no replica stepped for that reason.
      skipped: replicas that left the step out because their own gradient was not finite; `stats` are without them.
      bytes_sent: by this replica, weights and gradients alone.
      unshared: decisions of this replica in its weights that no other replica nor the published weights have yet:
        lost if its process is.
    """

    stats: LossStats
    norm: float
    skipped: int = 0
    bytes_sent: int = 0
    unshared: float = 0.0


class UpdateMode(Protocol):
    """Makes the step of one replica, and keeps the replicas in agreement.

    Built as `mode(replicas)`, a `ReplicaGroup`; with `options=...` where it declares options. With one replica, every
    mode does what a single learner does.

    In lockstep modes all replicas make the same calls at the same time, so that a method may talk to the others.
    `publish`, `save` and `load` never do. A mode that runs free waits for nobody. Its replica group has
    size 1: `step` returns what this replica alone learnt from, `total` returns the tensor itself. Whoever
    collects the results adds them up.

    Fields:
      replicas_differ: True if the weights of replicas, or what `save` gives, may differ between updates. A restart
        state then holds the means over replicas.
    """

    replicas_differ: bool

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        """Step with the gradients that lie in the vector, alone or together with the other replicas.

        Args:
          sums: float64 [K], the columns of `LossStats` over this replica's decisions. A step with a gradient that is
            not finite, or without a decision, leaves the weights as they are.
          learning_rate: step size.
        Raises:
          PeersLostError: another replica is gone.
        """
        ...

    def total(self, tensor: Tensor) -> Tensor:
        """Sum statistics over the whole group, whatever is stepped alone, as a new tensor or the tensor itself."""
        ...

    def publish(self, values: Tensor) -> Tensor:
        """float32 [P], the consensus: the weights that actors and the moving average get. Not to be written to.

        Args:
          values: the live weights of this replica.
        """
        ...

    def save(self) -> Mapping[str, Tensor]:
        """The memory of the mode between steps: vectors [P] and single numbers, under names of the mode's own."""
        ...

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        """Start again from weights [P] that all replicas have, and from what was saved.

        Args:
          saved: of `save`, means over replicas; empty for weights alone; also the entries of another mode.
        """
        ...


def make_update_mode(choice: Component, replicas: ReplicaGroup) -> UpdateMode:
    """Make the mode of that name, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: there is no such mode, or its options do not fit.
    """
    build = resolve(kind_of(choice, DEFAULT_UPDATE_MODE), UPDATE_MODES, what=PLACE)
    mode: UpdateMode = build(replicas, **options_argument(build, choice, place=PLACE))
    return mode


def mode_arrays(mode: UpdateMode) -> Arrays:
    """The memory of a mode, as entries of a restart state."""
    return {
        f"{MODE_VECTOR if entry.ndim else MODE_NUMBER}{name}": entry.detach().cpu().numpy().copy()
        for name, entry in mode.save().items()
    }


def load_mode(mode: UpdateMode, values: Tensor, saved: Mapping[str, NDArray[np.generic]]) -> None:
    """Start a mode again from weights [P] and the entries of a restart state."""
    entries = {
        name.removeprefix(MODE_VECTOR).removeprefix(MODE_NUMBER): torch.from_numpy(np.array(array)).to(values.device)
        for name, array in saved.items()
        if name.startswith((MODE_VECTOR, MODE_NUMBER))
    }
    mode.load(values, entries)
