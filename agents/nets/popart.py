"""PopArt: value targets normalised by running statistics, the last layer rescaled so that no output changes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class ValueStatistics:
    """Running moments of the value targets; travels with the weights and is part of a checkpoint.

    Fields:
      mean: float32 [], of the targets.
      second_moment: float32 [], mean of their squares.
    """

    mean: Tensor
    second_moment: Tensor

    @property
    def std(self) -> Tensor:
        """Standard deviation float32 [], held in [1e-4, 1e6] so that neither constant nor wild targets break it."""
        return (self.second_moment - self.mean.square()).clamp(min=0.0).sqrt().clamp(1e-4, 1e6)


def denormalise_values(outputs: Tensor, statistics: ValueStatistics) -> Tensor:
    """What the network says -> values in units of the return, in which V-trace and the others compute."""
    return outputs * statistics.std + statistics.mean


@torch.no_grad()
def rescale_output(layer: nn.Linear, row: int, old: ValueStatistics, new: ValueStatistics) -> None:
    """Change one output of a linear layer in place so that its denormalised value is what it was before.

    Args:
      row: which of the layer's outputs is the value.
      old, new: statistics before and after the batch.
    """
    layer.weight[row].mul_(old.std / new.std)
    layer.bias[row].mul_(old.std).add_(old.mean - new.mean).div_(new.std)
