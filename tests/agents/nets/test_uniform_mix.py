"""A share of the uniform distribution in categorical policies: its formula, and one policy for actor and learner."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.distributions import (
    ILLEGAL_LOGIT,
    categorical_entropy,
    log_softmax,
    mask_logits,
    mix_uniform,
)
from league.agents.nets.network import build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, multi_categorical

GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 8.0 * torch.randn(40, 6, generator=GENERATOR)
LEGAL = torch.rand(40, 6, generator=GENERATOR) < 0.5
LEGAL[:, 2] = True
LEGAL[0] = torch.tensor([False, False, True, False, False, False])


def by_hand(row: np.ndarray, legal: np.ndarray, share: float) -> np.ndarray:
    """The mixed policy of one row, action by action."""
    weights = [float(np.exp(np.float64(x))) if ok else 0.0 for x, ok in zip(row, legal, strict=True)]
    return np.array(
        [
            (1 - share) * w / sum(weights) + (share / legal.sum() if ok else 0.0)
            for w, ok in zip(weights, legal, strict=True)
        ]
    )


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
def test_the_policy_is_the_stated_mixture_of_softmax_and_uniform(share: float) -> None:
    mixed = mix_uniform(mask_logits(LOGITS, LEGAL), share)
    expected = [by_hand(row, legal, share) for row, legal in zip(LOGITS.numpy(), LEGAL.numpy(), strict=True)]
    np.testing.assert_allclose(torch.softmax(mixed, -1).numpy(), expected, rtol=1e-4, atol=1e-7)
    if share:
        np.testing.assert_allclose(mixed.exp()[LEGAL].numpy(), np.array(expected)[LEGAL.numpy()], rtol=1e-4)
    assert (mixed[~LEGAL] == ILLEGAL_LOGIT).all()


def test_gradients_are_those_of_the_mixture_also_far_out_and_where_nothing_is_legal() -> None:
    logits = (10.0 * LOGITS).double().requires_grad_()
    legal = LEGAL.clone()
    legal[1] = False
    mixed = mix_uniform(torch.where(legal, logits, ILLEGAL_LOGIT), 0.01)
    (mixed.clamp(min=-50) * torch.where(legal, 1.0, 0.0)).sum().backward()
    assert logits.grad is not None and logits.grad.isfinite().all()
    assert (mixed[1] == ILLEGAL_LOGIT).all() and not logits.grad[1].any()
    assert logits.grad[3].abs().sum() > 0


@pytest.mark.parametrize(
    ("actions", "head"),
    [
        (ActionSpec("categorical", 6), "auto"),
        (multi_categorical((2, 4)), "auto"),
        (multi_categorical((2, 4)), "autoregressive"),
    ],
)
def test_no_legal_choice_has_less_than_its_share_and_sampler_and_learner_agree(actions: ActionSpec, head: str) -> None:
    spec = EnvSpec("toy", 1, {"x": ArraySpec((3,), "float32")}, actions, (0,), True)
    network = build_network(spec, NetworkConfig(head=head, hidden=(8,), uniform_mix=0.12), seed=0)
    with torch.no_grad():
        network.parts["heads"].linear.weight.mul_(5000.0)  # type: ignore[operator, union-attr]
    obs, mask = {"x": torch.randn(500, 3, generator=GENERATOR)}, torch.ones(500, 6, dtype=torch.bool)
    params = network.step(obs, action_mask=mask).logits
    noise = torch.rand(500, network.head.num_noise, generator=GENERATOR)
    chosen, log_probs = network.head.sample(params, noise)
    torch.testing.assert_close(network.head.log_prob(params, chosen), log_probs)
    least = 0.12 / 6 if actions.kind == "categorical" else (0.12 / 2) * (0.12 / 4)
    assert log_probs.exp().min() >= least * 0.999
    assert network.head.entropy(params, chosen).min() > 0.1


def test_the_share_changes_the_policy_of_a_network_and_0_is_the_plain_one() -> None:
    spec = EnvSpec("toy", 1, {"x": ArraySpec((3,), "float32")}, ActionSpec("categorical", 4), (0,), False)
    plain, mixed = (build_network(spec, NetworkConfig(uniform_mix=share), seed=0) for share in (0.0, 0.3))
    obs = {"x": 100.0 * torch.randn(5, 3, generator=GENERATOR)}
    expected = mix_uniform(plain.step(obs).logits, 0.3)
    torch.testing.assert_close(mixed.step(obs).logits, expected)
    assert not torch.allclose(log_softmax(plain.step(obs).logits), expected)
    assert (categorical_entropy(expected) >= categorical_entropy(plain.step(obs).logits) - 1e-6).all()


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="uniform_mix"):
        NetworkConfig(uniform_mix=share)
