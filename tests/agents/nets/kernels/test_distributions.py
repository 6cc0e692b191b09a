"""Distributions: illegal actions never happen, samples follow their probabilities, acting and learning agree."""

from __future__ import annotations

import math

import pytest
import torch

from league.agents.nets.kernels.distributions import (
    categorical_entropy,
    categorical_log_prob,
    gaussian_entropy,
    log_softmax,
    mask_logits,
    probabilities,
    sample_categorical,
    sample_gaussian,
)

ROWS = 4096


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(num_actions: int, *, rows: int = ROWS, scale: float = 3.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Masked logits and masks; each mask keeps one action that is drawn at random, so that any may be the only one."""
    mask = torch.rand(rows, num_actions, generator=generator(1)) < 0.4
    mask[torch.arange(rows), torch.randint(num_actions, (rows,), generator=generator(2))] = True
    return mask_logits(scale * torch.randn(rows, num_actions, generator=generator(3)), mask), mask


@pytest.mark.parametrize("num_actions", [1, 2, 7, 30, 200])
@pytest.mark.parametrize("extreme", [0.0, 1.0 - 2**-24, None])
def test_an_illegal_action_is_never_drawn_whatever_the_noise(num_actions: int, extreme: float | None) -> None:
    logits, mask = draw(num_actions)
    noise = torch.rand(ROWS, generator=generator()) if extreme is None else torch.full((ROWS,), extreme)
    actions, log_probs = sample_categorical(logits, noise)
    assert mask[torch.arange(ROWS), actions].all()
    assert torch.isfinite(log_probs).all()


@pytest.mark.parametrize("num_actions", [2, 7, 30, 200])
def test_the_actors_log_probability_is_the_learners(num_actions: int) -> None:
    logits, _ = draw(num_actions)
    actions, log_probs = sample_categorical(logits, torch.rand(ROWS, generator=generator()))
    unrolled = logits.view(64, 64, num_actions)
    learned = categorical_log_prob(unrolled, actions.view(64, 64)).flatten()
    torch.testing.assert_close(log_probs, learned, rtol=0, atol=0)


@pytest.mark.parametrize("num_actions", [1, 2, 7, 30, 64, 65, 200])
def test_a_sample_inverts_the_distribution_function(num_actions: int) -> None:
    logits, _ = draw(num_actions, rows=200)
    noise = torch.rand(200, generator=generator())
    exact = torch.softmax(logits.double(), dim=-1).cumsum(-1)
    actions, _ = sample_categorical(logits, noise)
    for row in range(200):
        below = exact[row, actions[row] - 1] if actions[row] else torch.tensor(0.0)
        assert below - 1e-6 <= noise[row] * exact[row, -1] <= exact[row, actions[row]] + 1e-6


@pytest.mark.parametrize("num_actions", [1, 3, 64, 65, 300])
def test_probabilities_equal_their_definition_and_are_0_where_illegal(num_actions: int) -> None:
    logits, mask = draw(num_actions, rows=50)
    exact = torch.softmax(logits.double(), dim=-1)
    for given in (logits, log_softmax(logits)):
        ours = probabilities(given.view(5, 10, num_actions))
        assert ours.shape == (5, 10, num_actions)
        torch.testing.assert_close(ours.reshape(50, -1).double(), exact, rtol=1e-5, atol=1e-7)
        assert not ours.reshape(50, -1)[~mask].any()


def test_samples_follow_their_probabilities() -> None:
    num_samples = 200_000
    probs = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05])
    mask = probs > 0
    logits = mask_logits(torch.log(probs.clamp(min=1e-3)), mask).expand(num_samples, 5)
    actions, _ = sample_categorical(logits, torch.rand(num_samples, generator=generator()))
    counts = torch.bincount(actions, minlength=5)
    # Null: counts are multinomial. Each is within 4.5 standard deviations (chance of a false alarm below 1e-4).
    bound = 4.5 * torch.sqrt(num_samples * probs * (1 - probs))
    assert ((counts - num_samples * probs).abs() <= bound).all()


@pytest.mark.parametrize("num_actions", [1, 3, 64, 65, 300])
def test_log_softmax_equals_its_definition_for_few_and_many_actions(num_actions: int) -> None:
    logits, mask = draw(num_actions, rows=50)
    exact = torch.log_softmax(logits.double(), dim=-1)
    ours = log_softmax(logits.view(5, 10, num_actions))
    assert ours.shape == (5, 10, num_actions)
    torch.testing.assert_close(ours.reshape(50, -1)[mask].double(), exact[mask], rtol=1e-6, atol=1e-6)
    assert log_softmax(logits.bfloat16()).dtype == torch.float32


def test_entropy_of_masked_logits_is_that_of_the_legal_actions_alone() -> None:
    logits = mask_logits(torch.tensor([[1.0, 5.0, 2.0]]), torch.tensor([[True, False, True]]))
    torch.testing.assert_close(categorical_entropy(logits), categorical_entropy(torch.tensor([[1.0, 2.0]])))


def test_gaussian_samples_have_the_stated_moments_and_density() -> None:
    mean, log_std = torch.tensor([1.0, -2.0]).expand(ROWS * 16, 2), torch.tensor([0.3, -1.0]).expand(ROWS * 16, 2)
    actions, log_probs = sample_gaussian(mean, log_std, torch.rand(ROWS * 16, 2, generator=generator()))
    torch.testing.assert_close(actions.mean(0), mean[0], rtol=0, atol=0.03)
    torch.testing.assert_close(actions.std(0), log_std[0].exp(), rtol=0.02, atol=0)
    exact = torch.distributions.Normal(mean, log_std.exp())
    torch.testing.assert_close(log_probs, exact.log_prob(actions).sum(-1), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(gaussian_entropy(log_std), exact.entropy().sum(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extreme", [0.0, 1.0 - 2**-24])
def test_gaussian_samples_are_finite_at_the_ends_of_the_noise(extreme: float) -> None:
    actions, log_probs = sample_gaussian(torch.zeros(1, 1), torch.zeros(1, 1), torch.full((1, 1), extreme))
    assert torch.isfinite(actions).all()
    assert log_probs.item() > -0.5 * math.log(2 * math.pi) - 20
