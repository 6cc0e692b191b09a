"""Value normalisation: statistics follow the targets, and changing them changes no value that the network states."""

from __future__ import annotations

import torch
from torch import nn

from agents.losses.popart import (
    denormalise_values,
    initial_statistics,
    normalise_values,
    rescale_output,
    update_statistics,
)


def targets(*, scale: float, shift: float) -> torch.Tensor:
    return scale * torch.randn(20, 30, generator=torch.Generator().manual_seed(0)) + shift


def test_rescaling_preserves_every_value_and_leaves_the_policy_rows_alone() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(6, 4)
    features = torch.randn(10, 6)
    old = update_statistics(initial_statistics(), targets(scale=2.0, shift=1.0), rate=0.5)
    new = update_statistics(old, targets(scale=40.0, shift=-7.0), rate=0.3)
    before = layer(features)
    rescale_output(layer, 3, old, new)
    after = layer(features)
    torch.testing.assert_close(
        denormalise_values(after[:, 3], new), denormalise_values(before[:, 3], old), rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(after[:, :3], before[:, :3], rtol=0, atol=0)


def test_statistics_converge_to_those_of_the_targets() -> None:
    statistics = initial_statistics()
    batch = targets(scale=5.0, shift=3.0)
    for _ in range(200):
        statistics = update_statistics(statistics, batch, rate=0.05)
    torch.testing.assert_close(statistics.mean, batch.mean(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(statistics.std, batch.std(), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(denormalise_values(normalise_values(batch, statistics), statistics), batch)


def test_invalid_steps_do_not_count_and_constant_targets_stay_finite() -> None:
    batch = targets(scale=1.0, shift=0.0)
    valid = batch > 0
    masked = update_statistics(initial_statistics(), batch.masked_fill(~valid, 1e9), rate=1.0, valid=valid)
    torch.testing.assert_close(masked.mean, batch[valid].mean())
    constant = update_statistics(initial_statistics(), torch.full((4, 4), 2.0), rate=1.0)
    assert torch.isfinite(normalise_values(torch.tensor(2.0), constant))
    untouched = update_statistics(masked, batch, rate=1.0, valid=torch.zeros_like(valid))
    assert untouched is masked
