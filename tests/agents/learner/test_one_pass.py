"""The loss in one pass with its written-out gradient, against autograd through the single terms."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import league.agents.losses.one_pass
from league.agents.learner.algorithms.actor_critic import ActorCritic
from league.agents.learner.algorithms.loss_stats import COLUMNS
from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.algorithms.vtrace import VTraceObjective
from league.agents.losses.vtrace import Clips, vtrace, vtrace_by_torch
from league.agents.nets.kernels.compiled import library
from league.agents.nets.network import NetworkOutput
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, batch_of, network_of, small_config

PLAIN = [
    {},
    {"clip_rho": 0.7, "clip_c": 0.4, "clip_pg_rho": 1.5, "lambda_": 0.8, "value_cost": 0.3},
    {"clip_rho": None, "clip_c": None, "clip_pg_rho": None},
    {"correction": "none", "lambda_": 1.0},
]
OTHERS = [{"policy_loss": "neurd"}, {"upgo_cost": 0.5}, {"magnet_cost": 0.5}]
WEIGHTS = LossWeights(entropy_cost=0.1, advantage_scale=0.7, advantage_limit=1.1)


def objective_of(network, options: dict[str, object]) -> VTraceObjective:
    objective = make_objective(small_config(**options), network.head)
    assert isinstance(objective, VTraceObjective)
    return objective


def answers(network, batch) -> NetworkOutput:
    with torch.no_grad():
        output = network(batch.obs, action_mask=batch.action_mask)
    return NetworkOutput(output.logits.requires_grad_(), output.values.requires_grad_(), output.core)


@pytest.mark.parametrize("options", PLAIN)
@pytest.mark.parametrize("garbage", [0.0, 7.0, float("nan"), float("inf")])
@pytest.mark.parametrize("compiled", [True, False])
def test_one_pass_has_the_gradient_and_the_statistics_of_the_single_terms(
    options, garbage, compiled, monkeypatch
) -> None:
    if not compiled:
        monkeypatch.setattr(league.agents.losses.one_pass, "library", lambda name: None)
    elif library("vtrace_loss") is None:
        pytest.skip("this machine has no C compiler, or a processor without AVX2")
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    rewards = torch.where(batch.valid, batch.rewards, garbage)
    batch = dataclasses.replace(batch, rewards=rewards, log_probs=torch.where(batch.valid, batch.log_probs, garbage))
    objective, found = objective_of(network, options), []
    for loss_of in (objective.loss, lambda *given: ActorCritic.loss(objective, *given)):
        output = answers(network, batch)
        loss = loss_of(output, batch, WEIGHTS)
        (3.0 * loss.total).backward()
        found.append((loss.total.detach(), output.logits.grad, output.values.grad, loss.columns))
    assert bool((found[1][1] != 0).any()) and bool((found[1][2] != 0).any())
    for name, mine, theirs in zip(("loss", "logits", "values", "columns"), *found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-5, atol=2e-5, msg=lambda text, name=name: f"{name}: {text}")
    assert not found[0][3].requires_grad and len(found[0][3]) == len(COLUMNS)


@pytest.mark.parametrize("options", OTHERS)
def test_other_terms_are_never_left_out(options, monkeypatch) -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=4, steps=5)
    objective, asked = objective_of(network, options), []
    monkeypatch.setattr(ActorCritic, "loss", lambda *given: asked.append(given))
    objective.loss(answers(network, batch), batch, WEIGHTS)
    assert len(asked) == 1


def test_a_teacher_and_the_terms_of_a_subclass_are_never_left_out(monkeypatch) -> None:
    class Other(VTraceObjective):
        """With terms of its own."""

    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=4, steps=5)
    plain, asked = objective_of(network, {}), []
    monkeypatch.setattr(ActorCritic, "loss", lambda *given: asked.append(given))
    plain.loss(answers(network, batch), batch, dataclasses.replace(WEIGHTS, teacher_cost=0.2))
    Other(plain._config, network.head, plain._options).loss(answers(network, batch), batch, WEIGHTS)
    assert len(asked) == 2


@pytest.mark.parametrize("clips", [Clips(1.0, 1.0, 1.0), Clips(0.7, None, 1.3), Clips(None, 0.4, None)])
@pytest.mark.parametrize("masked", [True, False])
def test_vtrace_of_numpy_equals_that_of_torch(clips, masked) -> None:
    generator = torch.Generator().manual_seed(1)
    log_rhos, rewards, values = (torch.randn(9, 7, generator=generator) for _ in range(3))
    discounts = 0.99 * (torch.rand(9, 7, generator=generator) > 0.1)
    valid = torch.rand(9, 7, generator=generator) > 0.2 if masked else None
    if masked:
        log_rhos = torch.where(valid, log_rhos, 1e9)
    given = (log_rhos, discounts, rewards, values, torch.randn(7, generator=generator))
    expected = vtrace_by_torch(*given, clips=clips, lambda_=0.9, valid=valid)
    named = {"clip_rho": clips.rho, "clip_c": clips.c, "clip_pg_rho": clips.pg_rho}
    before = [tensor.clone() for tensor in given]
    found = vtrace(*given, **named, lambda_=0.9, valid=valid)
    for mine, theirs in ((found.targets, expected.targets), (found.advantages, expected.advantages)):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)
    assert all(torch.equal(tensor, kept) for tensor, kept in zip(given, before, strict=True))
