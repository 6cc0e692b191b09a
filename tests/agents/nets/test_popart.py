"""Value normalisation: statistics follow the targets, and changing them changes no value that the network states."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from league.agents.nets.popart import ValueScale, ValueStatistics, denormalise_values, moment_rate, rescale_output


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


def test_known_moments_are_begun_with_and_count_as_the_first_batches() -> None:
    scale, layer, batch = ValueScale(100.0, 2.0), nn.Linear(6, 4), targets(scale=2.0, shift=100.0)
    assert scale.statistics.std.item() == pytest.approx(2.0, rel=1e-3)
    torch.testing.assert_close(scale(torch.zeros(3)), torch.full((3,), 100.0))
    for step in range(5):
        rate = moment_rate(0.01, steps=step)
        scale.update(layer, 3, mean=float(batch.mean()), second_moment=float(batch.square().mean()), rate=rate)
        assert 1.0 < scale.statistics.std.item() < 4.0, "from 0 it would be tens on the way"


def test_the_deviation_of_constant_targets_stays_positive() -> None:
    assert statistics_of(torch.full((4, 4), 2.0)).std.item() == pytest.approx(2.0 / 2048)
    assert statistics_of(torch.zeros(4, 4)).std.item() == pytest.approx(1e-4)


@pytest.mark.parametrize("size", [1e8, 1e15])
def test_the_deviation_follows_returns_of_any_size(size: float) -> None:
    scale, layer, batch = ValueScale(), nn.Linear(6, 4), targets(scale=size, shift=-size)
    for _ in range(300):
        scale.update(layer, 3, mean=float(batch.mean()), second_moment=float(batch.square().mean()), rate=0.1)
    assert float(scale.statistics.std) == pytest.approx(size, rel=0.05)


def settled() -> tuple[ValueScale, nn.Linear]:
    """Moments of returns with mean 3 and deviation 5, and a layer of theirs."""
    scale = ValueScale()
    with torch.no_grad():
        scale.moments.copy_(torch.tensor([3.0, 9.0 + 25.0]))
    return scale, nn.Linear(6, 4)


@pytest.mark.parametrize("outlier", [1e4, 1e9])
def test_one_absurd_return_in_a_batch_moves_the_moments_little_and_no_value(outlier: float) -> None:
    scale, layer = settled()
    features = torch.randn(10, 6, generator=torch.Generator().manual_seed(1))
    before = scale(layer(features)[:, 3])
    batch = targets(scale=5.0, shift=3.0).double()
    batch[0, 0] = outlier
    scale.update(layer, 3, mean=float(batch.mean()), second_moment=float(batch.square().mean()), rate=0.01)
    assert abs(float(scale.statistics.mean) - 3.0) < 1.0 and 5.0 <= float(scale.statistics.std) < 5.0 * 1.6
    torch.testing.assert_close(scale(layer(features)[:, 3]), before, rtol=1e-4, atol=1e-4)


def test_returns_that_grow_a_thousandfold_for_good_are_followed_within_tens_of_updates() -> None:
    scale, layer = settled()
    batch = targets(scale=5e3, shift=3e3)
    for _ in range(300):
        scale.update(layer, 3, mean=float(batch.mean()), second_moment=float(batch.square().mean()), rate=0.01)
    torch.testing.assert_close(scale.statistics.std, batch.std(), rtol=0.2, atol=0.0)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_a_fresh_layer_is_never_stretched_whatever_the_size_of_returns(size: float) -> None:
    """Stretched weights would send large gradients of the value into the trunk, and crowd out those of the policy."""
    scale, layer, batch = ValueScale(), nn.Linear(6, 4), targets(scale=size, shift=0.0)
    first = layer.weight[3].abs().detach().clone()
    for step in range(1, 301):
        rate = moment_rate(0.01, steps=step)
        scale.update(layer, 3, mean=float(batch.mean()), second_moment=float(batch.square().mean()), rate=rate)
    assert (layer.weight[3].abs() <= first).all()
    torch.testing.assert_close(scale.statistics.std, batch.std(), rtol=0.05, atol=0.0)


def test_the_first_batches_count_as_in_a_plain_mean_with_ten_updates_of_the_initial_moments() -> None:
    weights = [10.0, *([0.0] * 40)]  # of the initial moments, then of each batch
    for step in range(1, 41):
        rate = moment_rate(3e-4, steps=step)
        weights = [weight * (1.0 - rate) for weight in weights]
        weights[step] = rate * 10.0
    assert weights[0] == pytest.approx(10.0 * 10.0 / 50.0)
    assert weights[1:] == pytest.approx([10.0 / 50.0] * 40)
    assert moment_rate(0.2, steps=1) == 0.2 and moment_rate(0.01, steps=1000) == 0.01


def test_a_bfloat16_copy_has_the_values_of_float32_far_from_0() -> None:
    raw, scale = torch.tensor([-1.0, 0.0, 1.0]), ValueScale(1013.25, 4.0)
    expected = scale(raw)
    torch.testing.assert_close(scale.to(torch.bfloat16)(raw), expected, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("mean", [12_735.0, 12_736.0, 12_737.3, -3e6])
def test_the_deviation_far_from_0_is_at_least_what_float32_squares_can_tell(mean: float) -> None:
    """12,736 squared is known to 16: with a deviation of 1, the difference of the squares is 0 or 16."""
    found = float(ValueScale(mean, 1.0).statistics.std)
    assert 0.999 * abs(mean) / 2048 <= found <= abs(mean) / 500
    assert float(ValueScale(12.0, 1.0).statistics.std) == pytest.approx(1.0)
