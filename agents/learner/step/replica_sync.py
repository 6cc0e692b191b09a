"""How replicas of a network agree on one set of weights: a swap point, with the exact way as its first entry.

Local SGD, parameter servers, Hogwild and gossip are other answers to the same two questions: what happens to the
gradients before a step, and what to the weights after it.
"""

from __future__ import annotations

from typing import Protocol

import torch.distributed
from torch import Tensor
from torch.distributed import ProcessGroup

from agents.learner.algorithms.registry import UPDATE_MODES
from envs.plugins import resolve


class UpdateMode(Protocol):
    """Built as `mode(group)`, `group` being the workers that hold the same parameters (None: there is one)."""

    def before_step(self, gradients: Tensor) -> None:
        """Change the summed gradients [P] in place."""
        ...

    def after_step(self, values: Tensor) -> None:
        """Change the weights [P] in place."""
        ...

    def total(self, tensor: Tensor) -> Tensor:
        """Counts, loss sums and statistics added up over the replicas whose gradients make one step."""
        ...


class AllReduce:
    """Every replica steps with the sum of all gradients: the same numbers as one replica with the whole batch."""

    def __init__(self, group: ProcessGroup | None) -> None:
        self._group = group

    def before_step(self, gradients: Tensor) -> None:
        """Add up in place."""
        if self._group is not None:
            torch.distributed.all_reduce(gradients, group=self._group)

    def after_step(self, values: Tensor) -> None:
        """Equal gradients from equal weights: nothing to agree on."""

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over replicas."""
        return total_over(tensor, self._group)


def make_update_mode(name: str, group: ProcessGroup | None) -> UpdateMode:
    """The registered mode of that name, or "module:attribute".

    Raises:
      ValueError: there is no such mode.
    """
    mode: UpdateMode = resolve(name, UPDATE_MODES, what="learner.pipeline.update_mode")(group)
    return mode


def total_over(tensor: Tensor, group: ProcessGroup | None) -> Tensor:
    """The sum of a tensor over a process group, as a new tensor; the tensor itself where there is no group."""
    if group is None:
        return tensor
    summed = tensor.clone()
    torch.distributed.all_reduce(summed, group=group)
    return summed
