"""Every loss clips the ratio of each group of an action's parts by itself: the learner against loops over decisions."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.appo import TARGET_LOG_PROBS
from league.agents.learner.algorithms.loss_stats import sums_of
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import local_updater
from league.agents.learner.step.updater import UpdateInputs
from league.agents.losses.action_groups import grouped_vtrace
from league.agents.losses.returns import upgo
from tests.agents.learner.learner_cases import (
    ACTOR_CRITICS,
    COEFFICIENTS,
    COMMANDS,
    ENTITIES,
    FLOAT32,
    batch_of,
    network_of,
    rounding_of_sums,
    small_config,
    unrolls_of,
)
from tests.oracles.policy_losses import appo_term, ppo_term

GROUPS = ((0, 2), (1,))
STEPS = 5
ORDER = UpdateInputs(1e-2, COEFFICIENTS, oldest_version=0, microbatches_per_block=1)


class Case:
    """A network, a batch, and each part's log-probabilities [B, T, H] under it and under a target network."""

    def __init__(self) -> None:
        self.network = network_of(COMMANDS, ENTITIES, policy_scale=1.0)
        self.target = network_of(COMMANDS, ENTITIES, seed=2, policy_scale=1.0)
        self.batch = batch_of(COMMANDS, self.network, rows=12, steps=STEPS)
        self.output = self.answers(self.network)
        self.now, self.used = self.by_sub_action(self.network)
        self.then, _ = self.by_sub_action(self.target)
        self.behaviour = self.batch.sub_action_log_probs

    def answers(self, network):  # type: ignore[no-untyped-def]
        batch = self.batch
        return network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)

    def by_sub_action(self, network):  # type: ignore[no-untyped-def]
        with torch.no_grad():
            parts, used, _ = network.head.sub_action_log_probs(
                self.answers(network).logits[:, :STEPS], self.batch.actions
            )
        return parts.permute(1, 2, 0), used.permute(1, 2, 0)

    def of_group(self, log_probs: torch.Tensor, row: int, step: int, group: tuple[int, ...]) -> float:
        """Sum over the group's used parts."""
        return sum(float(log_probs[row, step, part]) for part in group if self.used[row, step, part])

    def learnt(self) -> list[tuple[int, int]]:
        """(row, step) of the decisions that are learnt from."""
        return [(row, step) for row, step in torch.nonzero(self.batch.learn).tolist()]


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def test_upgo_clips_each_group_by_itself(case: Case) -> None:
    costs = {"upgo_cost": 1.0, "value_cost": 0.0, "action_groups": GROUPS}
    loss = make_objective(small_config(**costs), case.network.head).loss(case.output, case.batch, COEFFICIENTS)
    batch, values = case.batch, case.output.values.detach().t()
    gains = upgo(
        torch.zeros(STEPS, 12),
        0.99 * batch.discounts.t(),
        batch.rewards.t(),
        values[:STEPS].contiguous(),
        values[STEPS],
        valid=batch.valid.t(),
    ).advantages
    expected = 0.0
    for row, step in case.learnt():
        for group in GROUPS:
            now = case.of_group(case.now, row, step, group)
            ratio = min(1.0, math.exp(now - case.of_group(case.behaviour, row, step, group)))
            expected -= ratio * float(gains[step, row]) / COEFFICIENTS.advantage_scale * now
    assert sums_of(loss.columns).auxiliary == pytest.approx(expected, rel=1e-4)
    assert torch.isfinite(loss.total)


def test_ppo_clips_each_group_by_itself(case: Case) -> None:
    advantages = torch.randn(12, STEPS, generator=torch.Generator().manual_seed(0))
    fixed = case.batch.with_precomputed(
        {"advantages": advantages, "targets": advantages, "old_values": torch.zeros(12, STEPS)}
    )
    objective = make_objective(small_config(algorithm="ppo", action_groups=GROUPS), case.network.head)
    stats = sums_of(objective.loss(case.output, fixed, COEFFICIENTS).columns)
    terms = [
        ppo_term(
            case.of_group(case.now, row, step, group),
            case.of_group(case.behaviour, row, step, group),
            float(advantages[row, step]),
            0.2,
        )
        for row, step in case.learnt()
        for group in GROUPS
    ]
    assert stats.policy == pytest.approx(-sum(terms), rel=1e-4)
    assert 0 < stats.rho_clipped < stats.steps


def test_appo_clips_each_group_by_itself_around_the_target_network(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    seen = {}

    def spy(log_rhos, *given, **named):  # type: ignore[no-untyped-def]
        seen["returns"] = grouped_vtrace(log_rhos, *given, **named)
        return seen["returns"]

    monkeypatch.setattr("league.agents.learner.algorithms.loss_inputs.grouped_vtrace", spy)
    settings = small_config(algorithm="appo", action_groups=GROUPS)
    objective, of_slow = (make_objective(settings, network.head) for network in (case.network, case.target))
    fixed = case.batch.with_precomputed(of_slow.target_precomputed(case.batch, target=case.answers(case.target)))
    assert fixed.precomputed[TARGET_LOG_PROBS].shape == (12, STEPS, len(GROUPS))
    stats = sums_of(objective.loss(case.output, fixed, COEFFICIENTS).columns)
    terms = [
        appo_term(
            case.of_group(case.now, row, step, group),
            case.of_group(case.behaviour, row, step, group),
            case.of_group(case.then, row, step, group),
            float(seen["returns"].advantages[index, step, row]) / COEFFICIENTS.advantage_scale,
            clip=0.2,
            bound=2.0,
        )
        for row, step in case.learnt()
        for index, group in enumerate(GROUPS)
    ]
    assert stats.policy == pytest.approx(-sum(terms), rel=1e-3)


@pytest.mark.parametrize("algorithm", ACTOR_CRITICS)
def test_groups_are_exact_over_microbatches_in_every_algorithm(algorithm: str) -> None:
    settings = small_config(algorithm=algorithm, action_groups=GROUPS, upgo_cost=0.5)
    updater = local_updater(network_of(COMMANDS, ENTITIES), settings, FLOAT32)
    unrolls = unrolls_of(COMMANDS, network_of(COMMANDS, ENTITIES), rows=12, steps=STEPS)
    vectors = []
    for microbatches in (1, 4):
        updater.gradients([unrolls], dataclasses.replace(ORDER, microbatches_per_block=microbatches))
        vectors.append(updater.gradient_vector())
    np.testing.assert_allclose(
        vectors[1], vectors[0], atol=rounding_of_sums(vectors[0], COMMANDS, rows=12, steps=STEPS)
    )
