"""Choices of the loss: values normalised by running statistics, and the NeuRD form of the policy loss."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.build import build_learner, local_updater
from league.agents.learner.step.backend import SingleBackend
from league.agents.learner.step.updater import UpdateInputs
from league.agents.losses.neurd import neurd_loss
from league.agents.nets.network import build_network
from league.agents.nets.popart import MAX_GROWTH, MIN_STD, ValueScale
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    COEFFICIENTS,
    CONTROL,
    FLOAT32,
    LSTM,
    MLP,
    TWIN_LSTM,
    batch_of,
    gradients_of,
    largest_difference,
    network_of,
    small_config,
    unrolls_of,
)

POPART = {"value_normalisation": "popart", "value_rate": 0.2}
SHARED, TWIN = (dataclasses.replace(config, value_output="popart") for config in (LSTM, TWIN_LSTM))


def scaled(seed: int, network, *, by: float = 100.0):  # type: ignore[no-untyped-def]
    unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed)
    return dataclasses.replace(unrolls, rewards=(by * (0.1 * unrolls.rewards + 3.0)).astype(np.float32))


def values_of(network) -> torch.Tensor:  # type: ignore[no-untyped-def]
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5, seed=77)
    with torch.no_grad():
        values: torch.Tensor = network(
            batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask
        ).values
    return values


@pytest.mark.parametrize("config", [SHARED, TWIN])
def test_renormalising_changes_no_value(config) -> None:
    network = build_network(BOARD_GAME, config, seed=1)
    updater = local_updater(network, small_config(**POPART), FLOAT32)
    inputs = UpdateInputs(0.0, LossWeights(0.1, 1.0), oldest_version=0, microbatches_per_block=1)
    before, weights = values_of(network), updater.weights()
    result = updater.update([scaled(0, network)], inputs)
    scale = network.blocks[-1].module.value_activation
    moments = scale.moments.detach().numpy()
    mean, square = result.stats.target / result.stats.steps, result.stats.squared_target / result.stats.steps
    first = MIN_STD**2
    assert square > MAX_GROWTH * first
    shrunk = mean * (MAX_GROWTH * first / square) ** 0.5
    np.testing.assert_allclose(moments, [0.2 * shrunk, first * (0.8 + 0.2 * MAX_GROWTH)], rtol=1e-5)
    assert moments[0] > MIN_STD and not np.array_equal(updater.weights(), weights)
    torch.testing.assert_close(values_of(network), before, rtol=1e-4, atol=1e-3)


def test_gradient_is_that_of_the_normalised_error() -> None:
    scale = ValueScale()
    with torch.no_grad():
        scale.moments.copy_(torch.tensor([40.0, 40.0**2 + 25.0]))
    raw = torch.tensor([0.5, -2.0, 3.0], requires_grad=True)
    targets = torch.tensor([41.0, 30.0, 70.0])
    values = scale(raw)
    torch.testing.assert_close(values, raw.detach() * 5.0 + 40.0)
    (0.5 * (values - targets).square().sum()).backward()
    torch.testing.assert_close(raw.grad, raw.detach() - (targets - 40.0) / 5.0)


def test_values_of_large_returns_are_learnt_by_the_same_learning_rate() -> None:
    errors = {}
    for name, config, changes in (("none", LSTM, {}), ("popart", SHARED, POPART)):
        settings = small_config(learning_rate=1e-2, gamma=0.5, **changes)
        learner = build_learner(BOARD_GAME, config, settings, seed=1, dtype=torch.float32)
        network = build_network(BOARD_GAME, config, seed=1)
        for seed in range(100):
            report = learner.update(scaled(seed, network), budget_fraction=0.0)
        errors[name] = report.loss_value
    assert errors["popart"] < 0.5 * errors["none"], (
        "the returns lie around 600, one step moves a plain value by a few hundredths"
    )


def test_statistics_travel_with_the_weights_and_are_the_same_in_stages() -> None:
    single, piped = (
        build_learner(BOARD_GAME, SHARED, small_config(microbatches=4, **POPART, **spread), seed=1, dtype=torch.float32)
        for spread in ({}, {"backend": "threaded_pipeline", "stages": 2})
    )
    network = build_network(BOARD_GAME, SHARED, seed=1)
    for seed in range(3):
        for learner in (single, piped):
            learner.update(scaled(seed, network), budget_fraction=0.0)
    np.testing.assert_allclose(piped.publish().vector, single.publish().vector, rtol=1e-4, atol=1e-4)
    named = single.publish().named()
    assert named["parts.heads.value_activation.moments"][0] > 10.0 * MIN_STD
    other = build_learner(BOARD_GAME, SHARED, small_config(**POPART), seed=2, dtype=torch.float32)
    other.reset(single.publish())
    assert other.publish().digest() == single.publish().digest()
    piped.close()


@pytest.mark.parametrize(("config", "changes"), [(LSTM, POPART), (SHARED, {})])
def test_popart_in_the_learner_alone_or_in_the_network_alone_is_refused(config, changes) -> None:
    with pytest.raises(ValueError, match="set both to popart or neither"):
        build_learner(BOARD_GAME, config, small_config(**changes), seed=1, dtype=torch.float32)


def neurd_gradient(network, batch, *, microbatches: int = 1):  # type: ignore[no-untyped-def]
    config = small_config(policy_loss="neurd", microbatches=microbatches)
    objective = make_objective(config, network.head)
    network.zero_grad(set_to_none=True)
    SingleBackend(network, objective, config, FLOAT32).accumulate(batch.microbatches(microbatches), COEFFICIENTS)
    return gradients_of(network)


def test_neurd_is_exact_over_microbatches_and_no_policy_gradient() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    whole = neurd_gradient(network, batch)
    assert largest_difference(neurd_gradient(network, batch, microbatches=4), whole) < 1e-5
    config = small_config()
    network.zero_grad(set_to_none=True)
    SingleBackend(network, make_objective(config, network.head), config, FLOAT32).accumulate([batch], COEFFICIENTS)
    assert largest_difference(gradients_of(network), whole) > 1e-2


def test_neurd_takes_the_logits_the_scaled_advantages_and_the_learnt_decisions() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    objective = make_objective(small_config(policy_loss="neurd", neurd_min_prob=0.2, neurd_max_logit=1.0), network.head)
    seen = {}

    def spy(logits, actions, advantages, **named):  # type: ignore[no-untyped-def]
        seen.update(named, shapes=[tuple(tensor.shape) for tensor in (logits, actions, advantages)])
        return neurd_loss(logits, actions, advantages, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("league.agents.learner.algorithms.vtrace.neurd_loss", spy)
        output = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
        objective.loss(output, batch, COEFFICIENTS)
    assert seen["shapes"] == [(5, 12, 5), (5, 12), (5, 12)]
    assert (seen["min_prob"], seen["max_logit"]) == (0.2, 1.0)
    assert torch.equal(seen["valid"], batch.learn.t())


def test_neurd_is_refused_where_there_are_no_logits_or_another_algorithm() -> None:
    with pytest.raises(ValueError, match="policy_loss: neurd moves the logits of one categorical, not of a Gaussian"):
        make_objective(small_config(policy_loss="neurd"), build_network(CONTROL, LSTM, seed=1).head)
    with pytest.raises(ValueError, match=r"learner\.algorithm\.policy_loss: unknown key"):
        make_objective(small_config(policy_loss="neurd", algorithm="ppo"), network_of(BOARD_GAME, MLP).head)


@pytest.mark.parametrize("upgo_cost", [0.0, 0.5])
def test_without_a_correction_the_loss_is_that_of_n_step_returns(upgo_cost: float) -> None:
    """Whoever acted: the loss is that of V-trace for unrolls of the trained policy itself, whose ratios are 1."""
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    output = network(batch.obs, action_mask=batch.action_mask)
    own = network.head.log_prob(output.logits[:, :5], batch.actions).detach()
    assert float((own - batch.log_probs)[batch.learn].abs().max()) > 0.1
    plain = {"lambda_": 1.0, "upgo_cost": upgo_cost}
    corrected, uncorrected = (
        make_objective(small_config(correction=correction, **plain), network.head) for correction in ("vtrace", "none")
    )
    found = uncorrected.loss(output, batch, COEFFICIENTS).total
    on_policy = corrected.loss(output, dataclasses.replace(batch, log_probs=own), COEFFICIENTS).total
    torch.testing.assert_close(found, on_policy, rtol=1e-6, atol=1e-6)
    assert not torch.allclose(found, corrected.loss(output, batch, COEFFICIENTS).total, rtol=1e-3)
