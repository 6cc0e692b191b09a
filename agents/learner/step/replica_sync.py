"""Synchronisation of a network's replicas: a swap point whose first entry is exact all-reduce.

An update mode changes the gradients before a step and the weights after it. Local SGD, parameter servers, Hogwild and
gossip fit the same protocol.
"""

from __future__ import annotations

from typing import Protocol

import torch.distributed
from torch import Tensor
from torch.distributed import ProcessGroup

from agents.learner.algorithms.registry import UPDATE_MODES
from envs.plugins import resolve


class UpdateMode(Protocol):
    """Synchronises replicas; built as `mode(group)`, the workers with the same parameters (None: only one)."""

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


def make_update_mode(name: str, group: ProcessGroup | None) -> UpdateMode:
    """Make the registered mode of that name, or the one of "module:attribute".

    Raises:
      ValueError: there is no such mode.
    """
    mode: UpdateMode = resolve(name, UPDATE_MODES, what="learner.pipeline.update_mode")(group)
    return mode


def total_over(tensor: Tensor, group: ProcessGroup | None) -> Tensor:
    """The sum of a tensor over a process group, as a new tensor; the tensor itself if there is no group."""
    if group is None:
        return tensor
    summed = tensor.clone()
    torch.distributed.all_reduce(summed, group=group)
    return summed
