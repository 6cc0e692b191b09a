"""Synchronisation of a network's replicas: a swap point whose first entry is exact all-reduce.

An update mode changes the gradients before a step and the weights after it. Local SGD, parameter servers, Hogwild and
gossip fit the same protocol.
"""

from __future__ import annotations

from typing import Protocol

import torch.distributed
from torch import Tensor
from torch.distributed import ProcessGroup

from league.agents.learner.algorithms.registry import UPDATE_MODES
from league.agents.learner.config import DEFAULT_UPDATE_MODE
from league.envs.component_choice import Component, kind_of
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.pipeline.update_mode"


class UpdateMode(Protocol):
    """Synchronises replicas.

    Built as `mode(group)`, the workers with the same parameters (None: only one); with `options=...` where it declares
    options.
    """

    def before_step(self, gradients: Tensor) -> None:
        """Change the summed gradients [P] in place."""
        ...

    def after_step(self, values: Tensor) -> None:
        """Change the weights [P] in place."""
        ...

    def total(self, tensor: Tensor) -> Tensor:
        """Sum counts, losses and statistics over the replicas that contribute to one step."""
        ...


class AllReduce:
    """Every replica steps with the sum of all gradients, exactly as one replica with the whole batch."""

    def __init__(self, group: ProcessGroup | None) -> None:
        self._group = group

    def before_step(self, gradients: Tensor) -> None:
        """Sum over replicas in place."""
        if self._group is not None:
            torch.distributed.all_reduce(gradients, group=self._group)

    def after_step(self, values: Tensor) -> None:
        """Does nothing: equal gradients keep equal weights equal."""

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over replicas."""
        return total_over(tensor, self._group)


def make_update_mode(choice: Component, group: ProcessGroup | None) -> UpdateMode:
    """Make the mode of that name, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: there is no such mode, or its options do not fit.
    """
    build = resolve(kind_of(choice, DEFAULT_UPDATE_MODE), UPDATE_MODES, what=PLACE)
    mode: UpdateMode = build(group, **options_argument(build, choice, place=PLACE))
    return mode


def total_over(tensor: Tensor, group: ProcessGroup | None) -> Tensor:
    """The sum of a tensor over a process group, as a new tensor; the tensor itself if there is no group."""
    if group is None:
        return tensor
    summed = tensor.clone()
    torch.distributed.all_reduce(summed, group=group)
    return summed
