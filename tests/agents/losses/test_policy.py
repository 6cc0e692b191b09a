"""Policy, value, entropy, KL and NeuRD losses against step-by-step oracles, and what must hold for their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from league.agents.losses.kl import categorical_kl
from league.agents.losses.neurd import neurd_entropy_loss, neurd_loss
from league.agents.losses.policy import MAX_LOG_RATIO, appo_loss, policy_gradient_loss, ppo_loss, zero_invalid
from league.agents.losses.value import clipped_value_loss, value_loss
from league.agents.nets.kernels.distributions import categorical_entropy, mask_logits
from tests.oracles import policy_losses as oracle

T, B, A = 6, 4, 5
GENERATOR_SEED = 7


def normal(*shape: int, seed: int = GENERATOR_SEED) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def chance(probability: float, *shape: int, seed: int = GENERATOR_SEED) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < probability


LOG_PROBS, BEHAVIOUR, TARGET = (-normal(T, B, seed=seed).abs() for seed in (1, 2, 3))
ADVANTAGES, VALUES, OLD_VALUES, RETURNS = (normal(T, B, seed=seed) for seed in (4, 5, 6, 8))
VALID = chance(0.7, T, B)
ACTION_MASK = chance(0.6, T, B, A, seed=9)
ACTION_MASK[..., 2] = True
LOGITS = mask_logits(2.0 * normal(T, B, A, seed=10), ACTION_MASK)
OTHER_LOGITS = mask_logits(normal(T, B, A, seed=11), ACTION_MASK)
STEPS = [(t, b) for t in range(T) for b in range(B) if VALID[t, b]]


def at(tensor: Tensor, step: tuple[int, int]) -> float:
    return tensor[step].item()


def assert_sum(actual: Tensor, term: Callable[[tuple[int, int]], float]) -> None:
    """The loss is the plain sum of a term over valid steps."""
    expected = sum(term(step) for step in STEPS)
    torch.testing.assert_close(actual.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-6)


def test_policy_gradient_loss_sums_weighted_log_probabilities() -> None:
    loss = policy_gradient_loss(LOG_PROBS, ADVANTAGES, valid=VALID)
    assert_sum(loss, lambda s: -at(LOG_PROBS, s) * at(ADVANTAGES, s))


@pytest.mark.parametrize("clip", [0.1, 0.4])
def test_ppo_loss_equals_the_clipped_surrogate_by_cases(clip: float) -> None:
    loss = ppo_loss(LOG_PROBS, BEHAVIOUR, ADVANTAGES, clip=clip, valid=VALID)
    assert_sum(loss, lambda s: -oracle.ppo_term(at(LOG_PROBS, s), at(BEHAVIOUR, s), at(ADVANTAGES, s), clip))


@pytest.mark.parametrize("bound", [0.7, 2.0])
def test_appo_loss_equals_impact_by_cases(bound: float) -> None:
    loss = appo_loss(LOG_PROBS, BEHAVIOUR, TARGET, ADVANTAGES, clip=0.3, clip_target=bound, valid=VALID)

    def term(s: tuple[int, int]) -> float:
        numbers = (at(tensor, s) for tensor in (LOG_PROBS, BEHAVIOUR, TARGET, ADVANTAGES))
        return -oracle.appo_term(*numbers, clip=0.3, bound=bound)

    assert_sum(loss, term)


def test_appo_with_the_behaviour_policy_as_target_is_ppo() -> None:
    ours = appo_loss(LOG_PROBS, BEHAVIOUR, BEHAVIOUR, ADVANTAGES, clip=0.2)
    torch.testing.assert_close(ours, ppo_loss(LOG_PROBS, BEHAVIOUR, ADVANTAGES, clip=0.2))


@pytest.mark.parametrize("name", ["ppo", "appo"])
@pytest.mark.parametrize("log_ratio", [-200.0, -95.0, 60.0, 95.0, 1e9])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_extreme_log_ratios_have_the_gradient_that_the_clip_leaves(
    name: str, log_ratio: float, advantage: float
) -> None:
    log_probs = torch.full((1, 1), log_ratio, requires_grad=True)
    zeros, advantages = torch.zeros(1, 1), torch.full((1, 1), advantage)
    losses = {"ppo": ppo_loss(log_probs, zeros, advantages), "appo": appo_loss(log_probs, zeros, zeros, advantages)}
    loss = losses[name]
    loss.backward()
    assert log_probs.grad is not None and math.isfinite(loss.item()) and torch.isfinite(log_probs.grad).all()
    stopped = (log_ratio > 0) == (advantage > 0)
    if stopped:
        assert log_probs.grad.item() == 0.0
    else:  # the probability is led back towards the policy that acted, as strongly as the bound allows
        assert log_probs.grad.item() == pytest.approx(-advantage * math.exp(math.copysign(MAX_LOG_RATIO, log_ratio)))


def test_a_target_policy_that_calls_the_action_impossible_leaves_appo_finite() -> None:
    log_probs = torch.zeros(1, 1, requires_grad=True)
    loss = appo_loss(log_probs, torch.full((1, 1), -120.0), torch.zeros(1, 1), torch.ones(1, 1))
    loss.backward()
    assert log_probs.grad is not None and torch.isfinite(log_probs.grad).all() and math.isfinite(loss.item())


def test_value_losses_sum_half_squared_errors() -> None:
    assert_sum(value_loss(VALUES, RETURNS, valid=VALID), lambda s: 0.5 * (at(VALUES, s) - at(RETURNS, s)) ** 2)
    clipped = clipped_value_loss(VALUES, OLD_VALUES, RETURNS, clip=0.2, valid=VALID)
    assert_sum(clipped, lambda s: oracle.clipped_value_term(at(VALUES, s), at(OLD_VALUES, s), at(RETURNS, s), clip=0.2))


def probs(logits: Tensor, step: tuple[int, int]) -> list[float]:
    return oracle.softmax(logits[step].tolist())


def entropy_sum(logits: Tensor) -> Tensor:
    return zero_invalid(categorical_entropy(logits), VALID).sum()


def test_entropy_counts_legal_actions_only() -> None:
    assert (ACTION_MASK.sum(-1) == 1).any(), "a step with one legal action must be among the inputs"
    assert_sum(entropy_sum(LOGITS), lambda s: oracle.entropy(probs(LOGITS, s)))


def test_kl_is_of_the_first_policy_relative_to_the_second() -> None:
    for one, other in ((LOGITS, OTHER_LOGITS), (OTHER_LOGITS, LOGITS)):
        kl = zero_invalid(categorical_kl(one, other), VALID).sum()
        assert_sum(kl, lambda s, one=one, other=other: oracle.kl(probs(one, s), probs(other, s)))
    assert categorical_kl(LOGITS, LOGITS).sum().item() == 0.0


def legal_actions() -> Tensor:
    return ACTION_MASK.float().flatten(0, 1).argmax(-1).view(T, B)


@pytest.mark.parametrize("min_prob", [0.05, 0.5])
def test_neurd_moves_the_centred_logit_by_advantage_over_floored_probability(min_prob: float) -> None:
    logits = LOGITS.clone().requires_grad_()
    actions = legal_actions()
    neurd_loss(logits, actions, ADVANTAGES, min_prob=min_prob, valid=VALID).backward()
    for t in range(T):
        for b in range(B):
            expected = oracle.neurd_logit_gradient(
                LOGITS[t, b].tolist(), ACTION_MASK[t, b].tolist(), int(actions[t, b]), at(ADVANTAGES, (t, b)), min_prob
            )
            if VALID[t, b]:
                torch.testing.assert_close((-logits.grad[t, b]).tolist(), expected, rtol=1e-5, atol=1e-6)
            else:
                assert logits.grad[t, b].eq(0).all()


def test_neurd_stops_pushing_a_logit_beyond_its_bound_but_lets_it_come_back() -> None:
    logits = torch.tensor([[[3.0, -3.0], [3.0, -3.0]]], requires_grad=True)
    neurd_loss(logits, torch.zeros(1, 2, dtype=torch.int64), torch.tensor([[1.0, -1.0]]), max_logit=2.0).backward()
    assert logits.grad is not None
    assert logits.grad[0, 0].eq(0).all()
    assert logits.grad[0, 1, 0] > 0


def test_neurd_entropy_descends_towards_uniform_and_rests_there() -> None:
    logits = LOGITS.float().clone().requires_grad_()
    neurd_entropy_loss(logits).backward()
    stepped = (LOGITS.float() - 0.1 * logits.grad).detach()
    assert entropy_sum(stepped) > entropy_sum(LOGITS.float())
    uniform = mask_logits(torch.zeros(T, B, A), ACTION_MASK).requires_grad_()
    neurd_entropy_loss(uniform).backward()
    torch.testing.assert_close(uniform.grad, torch.zeros(T, B, A), rtol=0, atol=1e-6)


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "policy_gradient": lambda x, y, valid: policy_gradient_loss(x, y, valid=valid),
    "ppo": lambda x, y, valid: ppo_loss(x, BEHAVIOUR, y, valid=valid),
    "appo": lambda x, y, valid: appo_loss(x, BEHAVIOUR, TARGET, y, valid=valid),
    "value": lambda x, y, valid: value_loss(x, y, valid=valid),
    "clipped_value": lambda x, y, valid: clipped_value_loss(x, OLD_VALUES, y, clip=0.2, valid=valid),
}


@pytest.mark.parametrize("name", LOSSES)
def test_garbage_in_invalid_steps_reaches_neither_loss_nor_gradient(name: str) -> None:
    clean = LOG_PROBS.clone().requires_grad_()
    expected = LOSSES[name](clean, ADVANTAGES, VALID)
    expected.backward()
    dirty = LOG_PROBS.masked_fill(~VALID, 1e30).requires_grad_()
    loss = LOSSES[name](dirty, ADVANTAGES.masked_fill(~VALID, float("nan")), VALID)
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=0, atol=0)
    torch.testing.assert_close(dirty.grad, clean.grad, rtol=0, atol=0)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_microbatches_add_up_to_the_loss_of_the_batch(name: str) -> None:
    def cut(rows: slice) -> Tensor:
        keep = torch.zeros(T, B, dtype=torch.bool)
        keep[:, rows] = VALID[:, rows]
        return LOSSES[name](LOG_PROBS, ADVANTAGES, keep)

    whole = LOSSES[name](LOG_PROBS, ADVANTAGES, VALID)
    torch.testing.assert_close(cut(slice(0, 1)) + cut(slice(1, B)), whole)


@pytest.mark.parametrize("name", LOSSES)
def test_the_second_argument_is_a_constant(name: str) -> None:
    weights = ADVANTAGES.clone().requires_grad_()
    LOSSES[name](LOG_PROBS.clone().requires_grad_(), weights, VALID).backward()
    assert weights.grad is None


def test_an_illegal_action_receives_exactly_no_gradient() -> None:
    logits = (2.0 * normal(T, B, A)).requires_grad_()
    masked = mask_logits(logits, ACTION_MASK)
    (
        entropy_sum(masked) + (categorical_kl(OTHER_LOGITS, masked) + categorical_kl(masked, OTHER_LOGITS)).sum()
    ).backward()
    assert logits.grad is not None
    assert logits.grad[~ACTION_MASK].eq(0).all()
    assert torch.isfinite(logits.grad).all()
