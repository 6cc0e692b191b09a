"""PopArt in a network: the value output regresses on normalised targets, and answers in units of the return.

The running moments are parameters without a gradient, so that they travel with the weights: through snapshots,
checkpoints and resets, and to whichever stage holds the heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from agents.nets.popart import ValueStatistics, denormalise_values, rescale_output


class ValueScale(nn.Module):
    """Mean and second moment of the value targets, float32 [2]; at first 0 and 1, which changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.moments = nn.Parameter(torch.tensor([0.0, 1.0]))

    @property
    def statistics(self) -> ValueStatistics:
        """A copy of the moments as they are now."""
        mean, second_moment = self.moments.detach().clone()
        return ValueStatistics(mean=mean, second_moment=second_moment)

    def forward(self, raw: Tensor) -> Tensor:
        """Values float32 [...] in units of the return, of what the layer says [...].

        The gradient is that of the normalised error: half a squared error of these values, differentiated, moves the
        layer by (raw - normalised target), however large returns are.
        """
        statistics = self.statistics
        unit = raw / statistics.std
        return denormalise_values(raw, statistics).detach() + (unit - unit.detach())

    @torch.no_grad()
    def update(self, layer: nn.Linear, row: int, *, mean: float, second_moment: float, rate: float) -> None:
        """Move the moments towards a batch's, and rescale the layer so that no value changes.

        Args:
          layer, row: whose output is the value.
          mean, second_moment: of the batch's value targets.
          rate: in (0, 1], share of the batch in the new moments.
        """
        old = self.statistics
        self.moments.lerp_(self.moments.new_tensor([mean, second_moment]), rate)
        rescale_output(layer, row, old, self.statistics)
