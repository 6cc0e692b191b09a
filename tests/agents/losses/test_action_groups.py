"""Structured actions: ratios are clipped per group of heads, and unused heads do not count."""

from __future__ import annotations

import pytest
import torch

from league.agents.losses.action_groups import group_sums, grouped_policy_gradient_loss, grouped_upgo, grouped_vtrace
from league.agents.losses.returns import upgo
from league.agents.losses.vtrace import vtrace

H, T, B = 4, 5, 3
GROUPS = ((0,), (1,), (2, 3))


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


LOG_RHOS = normal(H, T, B, seed=1)
USED = normal(H, T, B, seed=2) > -0.5
DISCOUNTS = 0.9 * (normal(T, B, seed=3) > -1.0)
REWARDS, VALUES, BOOTSTRAP = normal(T, B, seed=4), normal(T, B, seed=5), normal(B, seed=6)


def test_log_ratios_are_summed_over_the_used_heads_of_a_group() -> None:
    grouped = group_sums(LOG_RHOS, GROUPS, used=USED)
    for t in range(T):
        for b in range(B):
            for g, group in enumerate(GROUPS):
                expected = sum(LOG_RHOS[h, t, b].item() for h in group if USED[h, t, b])
                assert grouped[g, t, b].item() == pytest.approx(expected, abs=1e-6)


def test_each_group_is_clipped_by_itself() -> None:
    grouped = group_sums(LOG_RHOS, GROUPS)
    valid = normal(T, B, seed=7) > -1.0
    together = grouped_vtrace(grouped, DISCOUNTS, REWARDS, VALUES, BOOTSTRAP, clip_rho=1.2, lambda_=0.9, valid=valid)
    for g in range(len(GROUPS)):
        alone = vtrace(grouped[g], DISCOUNTS, REWARDS, VALUES, BOOTSTRAP, clip_rho=1.2, lambda_=0.9, valid=valid)
        torch.testing.assert_close(together.targets[g], alone.targets, rtol=0, atol=0)
        torch.testing.assert_close(together.advantages[g], alone.advantages, rtol=0, atol=0)


def test_heads_of_a_group_share_its_advantage_and_unused_heads_get_no_gradient() -> None:
    log_probs = LOG_RHOS.clone().requires_grad_()
    advantages = normal(len(GROUPS), T, B, seed=8)
    grouped_policy_gradient_loss(group_sums(log_probs, GROUPS, used=USED), advantages).backward()
    expected = -torch.stack([advantages[0], advantages[1], advantages[2], advantages[2]]) * USED
    torch.testing.assert_close(log_probs.grad, expected)


@pytest.mark.parametrize("groups", [((0,), (1, 2)), ((0, 1), (1, 2, 3)), ((0, 1, 2, 3, 4),)])
def test_every_head_must_be_in_exactly_one_group(groups: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="exactly once"):
        group_sums(LOG_RHOS, groups)


@pytest.mark.parametrize("clip", [1.2, None])
def test_upgoing_returns_are_shared_and_their_ratio_is_clipped_per_group(clip: float | None) -> None:
    grouped = group_sums(LOG_RHOS, GROUPS, used=USED)
    valid = normal(T, B, seed=7) > -1.0
    together = grouped_upgo(grouped, DISCOUNTS, REWARDS, VALUES, BOOTSTRAP, clip_pg_rho=clip, valid=valid)
    for g in range(len(GROUPS)):
        alone = upgo(grouped[g], DISCOUNTS, REWARDS, VALUES, BOOTSTRAP, clip_pg_rho=clip, valid=valid)
        torch.testing.assert_close(together.returns, alone.returns, rtol=0, atol=0)
        torch.testing.assert_close(together.advantages[g], alone.advantages)


def test_garbage_ratios_of_invalid_steps_do_not_reach_the_upgoing_advantages() -> None:
    grouped = group_sums(LOG_RHOS, GROUPS)
    valid = torch.ones(T, B, dtype=torch.bool)
    valid[2, 1] = False
    grouped[:, 2, 1] = 1e6
    found = grouped_upgo(grouped, DISCOUNTS, REWARDS, VALUES, BOOTSTRAP, clip_pg_rho=None, valid=valid)
    assert not found.advantages[:, 2, 1].any() and torch.isfinite(found.advantages).all()
