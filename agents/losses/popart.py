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


def initial_statistics() -> ValueStatistics:
    """Mean 0 and standard deviation 1: normalising changes nothing yet."""
    return ValueStatistics(mean=torch.zeros(()), second_moment=torch.ones(()))


@torch.no_grad()
def update_statistics(
    statistics: ValueStatistics, targets: Tensor, *, rate: float, valid: Tensor | None = None
) -> ValueStatistics:
    """Statistics moved towards those of a batch of targets.

    Args:
      targets: float [T, B] in units of the return; all microbatches of an update together.
      rate: in (0, 1], share of the batch in the new moments; 3e-4 in the source.
      valid: bool [T, B], None when every step is valid. Without any valid step nothing changes.
    Source: van Hasselt et al. 2016, Learning values across many orders of magnitude, section 2.
    """
    chosen = targets.reshape(-1) if valid is None else targets[valid]
    if chosen.numel() == 0:
        return statistics
    return ValueStatistics(
        mean=torch.lerp(statistics.mean, chosen.mean(), rate),
        second_moment=torch.lerp(statistics.second_moment, chosen.square().mean(), rate),
    )


def normalise_values(values: Tensor, statistics: ValueStatistics) -> Tensor:
    """Values in units of the return -> what the network regresses on."""
    return (values - statistics.mean) / statistics.std


def denormalise_values(outputs: Tensor, statistics: ValueStatistics) -> Tensor:
    """What the network says -> values in units of the return, in which V-trace and the others compute."""
    return outputs * statistics.std + statistics.mean


@torch.no_grad()
def rescale_output(layer: nn.Linear, row: int, old: ValueStatistics, new: ValueStatistics) -> None:
    """Change one output of a linear layer in place so that its denormalised value is what it was before.

    Args:
      row: which of the layer's outputs is the value.
      old, new: statistics before and after `update_statistics`.
    """
    layer.weight[row].mul_(old.std / new.std)
    layer.bias[row].mul_(old.std).add_(old.mean - new.mean).div_(new.std)
