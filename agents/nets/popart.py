"""PopArt: the value output fits normalised targets, and its values are in units of the return.

Targets are normalised by running moments, and the last layer is rescaled so that no value changes. The moments are
parameters without a gradient, so that they follow the weights through snapshots, checkpoints and resets to the
stage that holds the heads.

Source: van Hasselt et al. 2016, Learning values across many orders of magnitude, section 2.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.nets.kernels.precision import ExactModule

MAX_GROWTH = 100.0
"""Largest factor by which a batch's second moment may exceed the running one; the batch is scaled down to it.

A batch with one absurd return then moves settled moments little, and true growth is still followed within tens of
updates.
"""

MIN_STD = 1e-4
"""Least standard deviation; also that before the first batch, unless a configuration knows better."""

FLOAT32_STD = 2.0**-11
"""Least standard deviation as a share of the mean: of less, the difference of two float32 squares says nothing."""

MAX_STD = 1e18
"""Its square is a float32, and a thousand of the largest rewards of a game lie within it."""

FIRST_UPDATES = 10
"""Weight of the initial moments, in updates: the first batches count for more than `rate`, as in a plain mean."""


@dataclass(frozen=True)
class ValueStatistics:
    """Running moments of the value targets; they are sent with the weights and belong to a checkpoint.

    Fields:
      mean: float32 [], of the targets.
      second_moment: float32 [], mean of their squares.
    """

    mean: Tensor
    second_moment: Tensor

    @functools.cached_property
    def std(self) -> Tensor:
        """Standard deviation float32 [], held within bounds so that neither constant nor wild targets break it."""
        std = (self.second_moment - self.mean.square()).clamp(min=0.0).sqrt()
        return torch.maximum(std, FLOAT32_STD * self.mean.abs()).clamp(MIN_STD, MAX_STD)


def denormalise_values(outputs: Tensor, statistics: ValueStatistics) -> Tensor:
    """Convert the network's normalised outputs to values in units of the return, as V-trace and the others need."""
    return outputs * statistics.std + statistics.mean


@torch.no_grad()
def rescale_output(layer: nn.Linear, row: int, old: ValueStatistics, new: ValueStatistics) -> None:
    """Change one output of a linear layer in place so that its denormalised value stays the same.

    Args:
      row: index of the layer's output that is the value.
      old, new: statistics before and after the batch.
    """
    layer.weight[row].mul_(old.std / new.std)
    layer.bias[row].mul_(old.std).add_(old.mean - new.mean).div_(new.std)


def moment_rate(rate: float, *, steps: int) -> float:
    """Weight of a batch in the running moments after `steps` optimizer steps, the present one included."""
    return max(rate, 1.0 / (steps + FIRST_UPDATES))


class ValueScale(ExactModule):
    """Mean and second moment of the value targets, float32 [2].

    A first deviation that is too large is worse than one that is too small. Shrinking stretches the weights of a fresh
    layer, whose errors then look like large returns. An optimizer needs very long to bring large weights down.

    Args:
      mean, std: of the targets, as far as known before the first batch. A mean that is far off does harm: on the way to
        it the deviation is a part of the distance.
    """

    def __init__(self, mean: float = 0.0, std: float = MIN_STD) -> None:
        super().__init__()
        self.moments = nn.Parameter(torch.tensor([mean, mean**2 + std**2]))

    @property
    def statistics(self) -> ValueStatistics:
        """A copy of the present moments."""
        mean, second_moment = self.moments.detach().clone()
        return ValueStatistics(mean=mean, second_moment=second_moment)

    def forward(self, raw: Tensor) -> Tensor:
        """Values float32 [...] in units of the return, from the layer's outputs [...].

        The gradient is that of the normalised error: half a squared error of these values, differentiated, moves the
        layer by (raw - normalised target), independent of the size of returns.
        """
        statistics = self.statistics
        unit = raw / statistics.std
        return denormalise_values(raw, statistics).detach() + (unit - unit.detach())

    @torch.no_grad()
    def update(self, layer: nn.Linear, row: int, *, mean: float, second_moment: float, rate: float) -> None:
        """Move the moments towards a batch's, and rescale the layer so that no value changes.

        Args:
          layer, row: the layer and the index of its output that is the value.
          mean, second_moment: of the batch's value targets.
          rate: in (0, 1], weight of the batch in the new moments.
        """
        old = self.statistics
        batch = torch.tensor([mean, second_moment], dtype=torch.float64, device=self.moments.device)
        excess = (batch[1] / (MAX_GROWTH * old.second_moment)).clamp(min=1.0)  # the host does not wait for the device
        self.moments.lerp_((batch / torch.stack([excess.sqrt(), excess])).to(self.moments.dtype), rate)
        rescale_output(layer, row, old, self.statistics)
