"""The squashed Gaussian: always within its bounds, a density that integrates to one, entropies as integrated."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.tanh_gaussian import TanhGaussianHead
from league.envs.protocol import ActionSpec

LOW, HIGH = -1.0, 3.0


def head(shape: tuple[int, ...] = (1,), *, low: float = LOW, high: float = HIGH) -> TanhGaussianHead:
    actions = ActionSpec("box", shape=shape, low=low, high=high)
    return TanhGaussianHead(actions, NetworkConfig(head="tanh_gaussian"), torch.Generator())


def parameters(mean: float, std: float) -> Tensor:
    return torch.tensor([[mean, torch.tensor(std).log().item()]])


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (30.0, 1.0), (-30.0, 0.1), (0.5, 20.0)])
def test_actions_stay_within_bounds_and_the_actors_density_is_the_learners(mean: float, std: float) -> None:
    rows = 4096
    stated = parameters(mean, std).expand(rows, 2)
    noise = torch.rand(rows, 1, generator=torch.Generator().manual_seed(0))
    noise[0], noise[1] = 0.0, 1.0 - 2**-24
    actions, log_probs = head().sample(stated, noise)
    assert actions.min() >= LOW
    assert actions.max() <= HIGH
    assert torch.isfinite(log_probs).all()
    learned = head().log_prob(stated.view(64, 64, 2), actions.view(64, 64, 1))
    torch.testing.assert_close(learned.flatten(), log_probs, rtol=0, atol=0)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.7, 0.5), (-1.0, 0.3)])
def test_the_density_integrates_to_one_and_the_entropy_is_its_integral(mean: float, std: float) -> None:
    edges = torch.linspace(LOW, HIGH, 40_001)
    centres = (edges[1:] + edges[:-1]) / 2
    width = float(edges[1] - edges[0])
    log_density = head().log_prob(parameters(mean, std).expand(len(centres), 2), centres[:, None]).double()
    density = log_density.exp()
    assert float(density.sum()) * width == pytest.approx(1.0, abs=1e-3)
    entropy = -float((density * log_density).sum()) * width
    assert head().entropy(parameters(mean, std)).item() == pytest.approx(entropy, abs=2e-3)


SATURATED = [(0.0, 1.0), (6.0, 1.0), (7.25, 0.5), (-8.0, 2.0), (50.0, 1.0), (0.0, 10.0)]


@pytest.mark.parametrize(("mean", "std"), SATURATED)
@pytest.mark.parametrize(("low", "high"), [(LOW, HIGH), (-1.0, 1.0), (100.0, 101.0)])
def test_the_score_averages_to_zero_also_of_a_saturated_policy(
    mean: float, std: float, low: float, high: float
) -> None:
    rows = 200_000
    stated = parameters(mean, std).requires_grad_()
    noise = ((torch.arange(rows) + 0.5) / rows)[:, None]
    box = head(low=low, high=high)
    actions, _ = box.sample(stated.detach().expand(rows, 2), noise)
    (score,) = torch.autograd.grad(box.log_prob(stated.expand(rows, 2), actions).mean(), stated)
    # Times std it has deviation 1 where nothing saturates; actions beside the bound are rounded, by up to 3 % of it.
    assert abs(float(score[0, 0]) * std) < 0.02
    assert abs(float(score[0, 1])) < 0.02


@pytest.mark.parametrize(("mean", "std"), SATURATED)
def test_density_and_tail_masses_add_up_to_one(mean: float, std: float) -> None:
    box = head()
    reach = box.max_raw
    raw = torch.linspace(-reach, reach, 20_001, dtype=torch.float64)
    raw = (raw[1:] + raw[:-1]) / 2
    unit = torch.tanh(raw)
    stated = parameters(mean, std).double()
    actions = (LOW + (HIGH - LOW) * 0.5 * (unit + 1.0))[:, None]
    slope = 0.5 * (HIGH - LOW) * (1.0 - unit.square())
    density = box.log_prob(stated.expand(len(raw), 2), actions).exp()
    inside = float((density * slope).sum() * (raw[1] - raw[0]))
    bounds = box.log_prob(stated.expand(2, 2), torch.tensor([[LOW], [HIGH]], dtype=torch.float64)).exp()
    assert inside + float(bounds.sum()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("low", "high"), [(LOW, HIGH), (-1.0, 1.0), (100.0, 101.0)])
def test_a_policy_beyond_the_bound_plays_the_bound_with_certainty(low: float, high: float) -> None:
    box = head(low=low, high=high)
    actions, log_probs = box.sample(parameters(50.0, 1.0).expand(64, 2), torch.rand(64, 1))
    assert actions.eq(high).all()
    assert log_probs.eq(0.0).all()


def test_samples_have_the_stated_median_and_shape() -> None:
    box = head((2, 1), low=0.0, high=1.0)
    stated = torch.tensor([0.5, -1.0, 0.0, -0.7]).expand(20_001, 4)
    noise = torch.rand(20_001, 2, generator=torch.Generator().manual_seed(0))
    actions, _ = box.sample(stated, noise)
    assert actions.shape == (20_001, 2, 1)
    torch.testing.assert_close(actions.median(0).values, box.mode(stated[0]), rtol=0, atol=0.01)


def test_gradients_are_finite_at_the_bounds() -> None:
    stated = parameters(0.0, 1.0).expand(2, 2).clone().requires_grad_()
    (head().log_prob(stated, torch.tensor([[LOW], [HIGH]])).sum() + head().entropy(stated).sum()).backward()
    assert stated.grad is not None
    assert torch.isfinite(stated.grad).all()


def test_a_box_without_width_or_bounds_is_refused() -> None:
    for low, high in ((1.0, 1.0), (-float("inf"), 1.0)):
        with pytest.raises(ValueError, match="finite bounds, low below high"):
            head(low=low, high=high)
    with pytest.raises(ValueError, match="answers box actions, the game takes categorical"):
        TanhGaussianHead(ActionSpec("categorical", 3), NetworkConfig(), torch.Generator())
