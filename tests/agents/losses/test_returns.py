"""The return estimators against loop-for-loop oracles, and the identities that tie them to each other."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from league.agents.losses.returns import gae, upgo
from league.agents.losses.vtrace import vtrace
from tests.oracles.returns import gae_column, split_at_invalid, td_lambda_column, upgo_column, vtrace_column

SEEDS = range(6)


@dataclass(frozen=True)
class Batch:
    """Inputs of every estimator: float64 [T, B], bootstrap [B], valid bool [T, B]."""

    log_rhos: Tensor
    discounts: Tensor
    rewards: Tensor
    values: Tensor
    bootstrap: Tensor
    valid: Tensor

    @property
    def on_policy_part(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.discounts, self.rewards, self.values, self.bootstrap

    @property
    def all(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.log_rhos, *self.on_policy_part

    def steps(self, start: int, stop: int, bootstrap: Tensor) -> Batch:
        cut = slice(start, stop)
        return Batch(
            self.log_rhos[cut], self.discounts[cut], self.rewards[cut], self.values[cut], bootstrap, self.valid[cut]
        )

    def columns(self, index: Tensor) -> Batch:
        parts = (self.log_rhos, self.discounts, self.rewards, self.values)
        return Batch(*(part[:, index] for part in parts), self.bootstrap[index], self.valid[:, index])


def draw(seed: int, *, num_steps: int = 12, num_rows: int = 5, on_policy: bool = False) -> Batch:
    """Ratios on both sides of every clip, terminations anywhere (the last step too), invalid steps anywhere."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def chance(probability: float) -> Tensor:
        return torch.rand(num_steps, num_rows, generator=generator) < probability

    shape = (num_steps, num_rows)
    log_rhos = normal(*shape) * (0.0 if on_policy else 1.0)
    discounts = 0.97 * (~chance(0.2)).double()
    discounts[-1, 0] = 0.0
    return Batch(log_rhos, discounts, normal(*shape), normal(*shape), normal(num_rows), ~chance(0.15))


def assert_columns(actual: Tensor, expected: list[list[float]]) -> None:
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64).t(), rtol=1e-12, atol=1e-12)


CLIPS = [(1.0, 1.0, 1.0, 1.0), (3.7, 1.0, 2.2, 1.0), (1.0, 0.5, 1.0, 0.9), (None, None, None, 1.0)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("clip_rho", "clip_c", "clip_pg_rho", "lambda_"), CLIPS)
def test_vtrace_equals_the_double_sum_also_around_invalid_steps(
    seed: int, clip_rho: float | None, clip_c: float | None, clip_pg_rho: float | None, lambda_: float
) -> None:
    batch = draw(seed)
    settings = {"clip_rho": clip_rho, "clip_c": clip_c, "clip_pg_rho": clip_pg_rho, "lambda_": lambda_}
    actual = vtrace(*batch.all, **settings, valid=batch.valid)
    columns = []
    for b in range(batch.values.shape[1]):
        parts = [part[:, b].tolist() for part in (batch.log_rhos, batch.discounts, batch.rewards, batch.values)]

        def run(start: int, stop: int, behind: float, parts: list[list[float]] = parts) -> list[list[float]]:
            return list(vtrace_column(*(part[start:stop] for part in parts), behind, **settings))

        columns.append(split_at_invalid(run, parts[3], batch.bootstrap[b].item(), batch.valid[:, b].tolist()))
    assert_columns(actual.targets, [column[0] for column in columns])
    assert_columns(actual.advantages, [column[1] for column in columns])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lambda_", [0.0, 0.8, 1.0])
def test_gae_and_its_value_targets_equal_their_sums_also_around_invalid_steps(seed: int, lambda_: float) -> None:
    batch = draw(seed)
    targets, advantages = [], []
    for b in range(batch.values.shape[1]):
        parts = [part[:, b].tolist() for part in (batch.discounts, batch.rewards, batch.values)]

        def run(start: int, stop: int, behind: float, parts: list[list[float]] = parts) -> list[list[float]]:
            cut = [part[start:stop] for part in parts]
            return [td_lambda_column(*cut, behind, lambda_=lambda_), gae_column(*cut, behind, lambda_=lambda_)]

        columns = split_at_invalid(run, parts[2], batch.bootstrap[b].item(), batch.valid[:, b].tolist())
        targets.append(columns[0])
        advantages.append(columns[1])
    found = gae(*batch.on_policy_part, lambda_=lambda_, valid=batch.valid)
    assert_columns(found, advantages)
    assert_columns(found + batch.values, targets)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("clip_pg_rho", [1.0, 2.5, None])
def test_upgo_follows_rewards_until_they_disappoint_also_around_invalid_steps(
    seed: int, clip_pg_rho: float | None
) -> None:
    batch = draw(seed)
    columns = []
    for b in range(batch.values.shape[1]):
        parts = [part[:, b].tolist() for part in (batch.log_rhos, batch.discounts, batch.rewards, batch.values)]

        def run(start: int, stop: int, behind: float, parts: list[list[float]] = parts) -> list[list[float]]:
            return list(upgo_column(*(part[start:stop] for part in parts), behind, clip_pg_rho=clip_pg_rho))

        columns.append(split_at_invalid(run, parts[3], batch.bootstrap[b].item(), batch.valid[:, b].tolist()))
    actual = upgo(*batch.all, clip_pg_rho=clip_pg_rho, valid=batch.valid)
    assert_columns(actual.returns, [column[0] for column in columns])
    assert_columns(actual.advantages, [column[1] for column in columns])


@pytest.mark.parametrize("seed", SEEDS)
def test_on_policy_vtrace_is_the_n_step_return(seed: int) -> None:
    batch = draw(seed, on_policy=True)
    result = vtrace(*batch.all)
    advantages = gae(*batch.on_policy_part, lambda_=1.0)
    torch.testing.assert_close(result.targets, advantages + batch.values)
    torch.testing.assert_close(result.advantages, advantages)


def test_unclipped_vtrace_is_the_importance_weighted_return() -> None:
    batch = draw(0, num_steps=3, num_rows=2)
    result = vtrace(*batch.all, clip_rho=None, clip_c=None, clip_pg_rho=None)
    rhos, discounts, rewards = batch.log_rhos.exp(), batch.discounts, batch.rewards
    # Per-decision importance sampling with V as control variate: G_t = V_t + rho_t (r_t + g_t G_{t+1} - V_t).
    expected = batch.bootstrap
    for t in reversed(range(3)):
        expected = batch.values[t] + rhos[t] * (rewards[t] + discounts[t] * expected - batch.values[t])
        torch.testing.assert_close(result.targets[t], expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unroll_split_at_a_terminal_equals_two_unrolls(seed: int) -> None:
    batch = draw(seed)
    batch.discounts[6] = 0.0
    head = batch.steps(0, 7, torch.full_like(batch.bootstrap, 123.0))
    tail = batch.steps(7, 12, batch.bootstrap)
    whole, first, second = (vtrace(*part.all, valid=part.valid) for part in (batch, head, tail))
    torch.testing.assert_close(whole.targets, torch.cat([first.targets, second.targets]))
    torch.testing.assert_close(whole.advantages, torch.cat([first.advantages, second.advantages]))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_behind_a_terminal_reaches_the_steps_before_it(seed: int) -> None:
    batch = draw(seed)
    batch.discounts[6] = 0.0
    before = vtrace(*batch.all)
    for part in (batch.log_rhos, batch.rewards, batch.values):
        part[7:] += 50.0
    after = vtrace(*batch.all)
    torch.testing.assert_close(before.targets[:7], after.targets[:7], rtol=0, atol=0)
    torch.testing.assert_close(before.advantages[:7], after.advantages[:7], rtol=0, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bootstrap_counts_once(seed: int) -> None:
    batch = draw(seed, on_policy=True)
    batch.discounts.fill_(0.9)
    raised = Batch(*batch.all[:4], batch.bootstrap + 1.0, batch.valid)
    change = vtrace(*raised.all).targets - vtrace(*batch.all).targets
    exponents = torch.arange(12, 0, -1, dtype=torch.float64)
    torch.testing.assert_close(change, (0.9**exponents)[:, None].expand_as(change))


def test_a_terminal_last_step_ignores_the_bootstrap() -> None:
    batch = draw(3)
    batch.discounts[-1] = 0.0
    raised = Batch(*batch.all[:4], batch.bootstrap + 1e6, batch.valid)
    torch.testing.assert_close(vtrace(*raised.all).targets, vtrace(*batch.all).targets, rtol=0, atol=0)
    torch.testing.assert_close(upgo(*raised.all).returns, upgo(*batch.all).returns, rtol=0, atol=0)
    gaes = [gae(*part.on_policy_part, lambda_=0.9) for part in (raised, batch)]
    torch.testing.assert_close(gaes[0], gaes[1], rtol=0, atol=0)


def test_truncation_is_not_termination() -> None:
    discounts = torch.tensor([[0.9], [0.9], [0.9]])
    rewards = torch.tensor([[1.0], [5.0], [2.0]])
    values = torch.tensor([[0.0], [10.0], [0.0]])
    valid = torch.tensor([[True], [False], [True]])
    bootstrap = torch.tensor([4.0])
    truncated = vtrace(torch.zeros(3, 1), discounts, rewards, values, bootstrap, valid=valid)
    # Step 0 bootstraps from V = 10 of its final observation; the next episode (reward 2, V = 4) stays out of it.
    torch.testing.assert_close(truncated.targets, torch.tensor([[1.0 + 0.9 * 10.0], [10.0], [2.0 + 0.9 * 4.0]]))
    discounts[0] = 0.0
    terminated = vtrace(torch.zeros(3, 1), discounts, rewards, values, bootstrap, valid=valid)
    torch.testing.assert_close(terminated.targets[0], torch.tensor([1.0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_stands_in_invalid_steps_changes_nothing(seed: int) -> None:
    batch = draw(seed)
    garbage = batch.valid.logical_not()
    clean = (vtrace(*batch.all, valid=batch.valid), upgo(*batch.all, valid=batch.valid))
    for part in (batch.log_rhos, batch.discounts, batch.rewards):
        part[garbage] = float("nan")
    dirty = (vtrace(*batch.all, valid=batch.valid), upgo(*batch.all, valid=batch.valid))
    torch.testing.assert_close(dirty[0].targets, clean[0].targets, rtol=0, atol=0)
    torch.testing.assert_close(dirty[0].advantages, clean[0].advantages, rtol=0, atol=0)
    torch.testing.assert_close(dirty[1].returns, clean[1].returns, rtol=0, atol=0)
    torch.testing.assert_close(dirty[1].advantages, clean[1].advantages, rtol=0, atol=0)
    assert torch.isfinite(gae(*batch.on_policy_part, lambda_=0.9, valid=batch.valid)).all()


def test_permuting_or_cutting_rows_permutes_or_cuts_the_result() -> None:
    batch = draw(1, num_rows=6)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    whole = vtrace(*batch.all, valid=batch.valid)
    permuted = batch.columns(order)
    torch.testing.assert_close(vtrace(*permuted.all, valid=permuted.valid).targets, whole.targets[:, order])
    halves = [batch.columns(torch.arange(0, 3)), batch.columns(torch.arange(3, 6))]
    pieces = [vtrace(*half.all, valid=half.valid).advantages for half in halves]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole.advantages, rtol=0, atol=0)


def test_no_gradient_leaks_through_targets_and_inputs_stay_as_they_were() -> None:
    batch = draw(2)
    leaves = [part.clone().requires_grad_() for part in batch.all]
    results = [vtrace(*leaves), upgo(*leaves)]
    tensors = [results[0].targets, results[0].advantages, results[1].returns, results[1].advantages]
    tensors.append(gae(*leaves[1:], lambda_=0.9))
    assert not any(tensor.requires_grad for tensor in tensors)
    for leaf, part in zip(leaves, batch.all, strict=True):
        torch.testing.assert_close(leaf.detach(), part, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["log_rhos", "discounts", "rewards", "bootstrap_value", "valid"])
def test_a_wrong_shape_is_named_with_both_shapes(name: str) -> None:
    good = {name: torch.zeros(4, 3) for name in ("log_rhos", "discounts", "rewards", "values")}
    tensors = {**good, "bootstrap_value": torch.zeros(3), "valid": torch.ones(4, 3, dtype=torch.bool)}
    tensors[name] = tensors[name][..., :2]
    with pytest.raises(ValueError, match=rf"{name} has shape .*2.*expected"):
        vtrace(**tensors)


def test_ratios_without_a_clip_stay_finite_where_they_overflow() -> None:
    log_rhos = torch.tensor([[95.0], [0.0], [200.0]])
    zeros = torch.zeros(3, 1)
    plain = (zeros + 0.9, zeros, zeros, torch.zeros(1))
    returns = vtrace(log_rhos, *plain, clip_rho=None, clip_c=None, clip_pg_rho=None)
    for tensor in (returns.targets, returns.advantages, upgo(log_rhos, *plain, clip_pg_rho=None).advantages):
        assert torch.isfinite(tensor).all()
