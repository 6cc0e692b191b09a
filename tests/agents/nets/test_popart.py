"""Value normalisation: statistics follow the targets, and changing them changes no value that the network states."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from agents.nets.popart import ValueScale, ValueStatistics, denormalise_values, rescale_output


def targets(*, scale: float, shift: float) -> Tensor:
    return scale * torch.randn(20, 30, generator=torch.Generator().manual_seed(0)) + shift


def statistics_of(batch: Tensor) -> ValueStatistics:
    return ValueStatistics(mean=batch.mean(), second_moment=batch.square().mean())


def test_rescaling_preserves_every_value_and_leaves_the_policy_rows_alone() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(6, 4)
    features = torch.randn(10, 6)
    old, new = statistics_of(targets(scale=2.0, shift=1.0)), statistics_of(targets(scale=40.0, shift=-7.0))
    before = layer(features)
    rescale_output(layer, 3, old, new)
    after = layer(features)
    torch.testing.assert_close(
        denormalise_values(after[:, 3], new), denormalise_values(before[:, 3], old), rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(after[:, :3], before[:, :3], rtol=0, atol=0)


def test_statistics_converge_to_those_of_the_targets() -> None:
    scale, layer, batch = ValueScale(), nn.Linear(6, 4), targets(scale=5.0, shift=3.0)
    for _ in range(200):
        scale.update(layer, 3, mean=float(batch.mean()), second_moment=float(batch.square().mean()), rate=0.05)
    torch.testing.assert_close(scale.statistics.mean, batch.mean(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(scale.statistics.std, batch.std(), rtol=1e-2, atol=1e-3)


def test_the_deviation_of_constant_targets_stays_positive() -> None:
    constant = statistics_of(torch.full((4, 4), 2.0))
    assert constant.std.item() == pytest.approx(1e-4)
