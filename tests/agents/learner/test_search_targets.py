"""The objective that learns from searches, against its definition; microbatches; rows that were not searched."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.loss_stats import sums_of
from league.agents.learner.algorithms.objective import LossWeights, learns_from, make_objective, needs_fresh
from league.agents.learner.build import local_updater
from league.agents.learner.data.batch import Batch, batch_from
from league.agents.learner.step.updater import UpdateInputs
from league.agents.nets.network import Network, NetworkOutput
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from tests.agents.learner.learner_cases import BOARD_GAME, CPU, FLOAT32, MLP, network_of, small_config

ROWS, STEPS = 12, 5
WEIGHTS = LossWeights(entropy_cost=0.0, advantage_scale=1.0)
CONFIG = small_config(algorithm="search_targets")


def shape_of(network: Network) -> UnrollSpec:
    return UnrollSpec.of(BOARD_GAME, network, unroll_length=STEPS, recorded=learns_from(CONFIG))


def searched_batch(network: Network, seed: int = 0) -> Batch:
    unrolls = synthetic_unrolls(shape_of(network), rows=ROWS, seed=seed)
    return batch_from(unrolls, oldest_version=0, device=CPU)


@torch.no_grad()
def outputs(network: Network, batch: Batch) -> NetworkOutput:
    return network(batch.obs, action_mask=batch.action_mask)


def loss_of(output: NetworkOutput, batch: Batch, network: Network, **options: float) -> dict[str, float]:
    config = small_config(algorithm="search_targets", **options)
    columns = sums_of(make_objective(config, network.head).loss(output, batch, WEIGHTS).columns)
    return {"policy": columns.policy, "value": columns.value, "target": columns.target}


def test_the_loss_is_cross_entropy_and_the_squared_error_to_the_outcome():
    network = network_of(BOARD_GAME, MLP)
    batch = searched_batch(network)
    output = outputs(network, batch)
    policy = value = 0.0
    log_policy = torch.log_softmax(output.logits, -1)
    for row in range(ROWS):
        for step in range(STEPS):
            if not batch.valid[row, step]:
                continue
            for action, chance in enumerate(batch.search_policy[row, step].tolist()):
                policy -= chance * float(log_policy[row, step, action]) if chance else 0.0
            target, discount, last = 0.0, 1.0, step
            while True:  # the rewards up to the end of the episode, or of what was recorded of it
                target += discount * float(batch.rewards[row, last])
                discount *= float(batch.discounts[row, last]) * CONFIG.gamma
                last += 1
                if discount == 0.0:
                    break
                if last == STEPS or not batch.valid[row, last]:
                    target += discount * float(output.values[row, last])
                    break
            value += 0.5 * (target - float(output.values[row, step])) ** 2
    found = loss_of(output, batch, network)
    assert found["policy"] == pytest.approx(policy, rel=1e-4)
    assert found["value"] == pytest.approx(value, rel=1e-4)


def test_below_lambda_1_the_values_of_searches_stand_for_the_rest_of_the_game():
    network = network_of(BOARD_GAME, MLP)
    batch = searched_batch(network)
    output = outputs(network, batch)
    shifted = dataclasses.replace(batch, search_value=batch.search_value + 3.0)
    assert loss_of(output, shifted, network)["target"] == pytest.approx(loss_of(output, batch, network)["target"])
    one_step = [loss_of(output, each, network, lambda_=0.0)["target"] for each in (batch, shifted)]
    followed = batch.valid[:, :-1] & batch.valid[:, 1:] & (batch.discounts[:, :-1] > 0)
    assert one_step[1] - one_step[0] == pytest.approx(3.0 * CONFIG.gamma * float(followed.sum()), rel=1e-4)


def test_a_decision_that_was_not_searched_moves_the_value_alone():
    network = network_of(BOARD_GAME, MLP)
    batch = searched_batch(network)
    unsearched = dataclasses.replace(batch, search_policy=torch.zeros_like(batch.search_policy))
    output = outputs(network, batch)
    found = loss_of(output, unsearched, network)
    assert found["policy"] == 0.0 and found["value"] == pytest.approx(loss_of(output, batch, network)["value"])


def test_gradients_of_microbatches_add_up_and_garbage_in_invalid_steps_changes_nothing():
    network = network_of(BOARD_GAME, MLP)
    unrolls = synthetic_unrolls(shape_of(network), rows=ROWS, seed=0)
    wrong = ~unrolls.valid
    assert wrong.any()
    spoilt = dataclasses.replace(
        unrolls,
        rewards=np.where(wrong, np.float32(1e30), unrolls.rewards),
        search_policy=np.where(wrong[..., None], np.float32(math.pi), unrolls.search_policy),
        search_value=np.where(wrong, np.float32(1e30), unrolls.search_value),
    )
    vectors = []
    for rows, microbatches in ((unrolls, 1), (unrolls, 4), (spoilt, 1)):
        updater = local_updater(network_of(BOARD_GAME, MLP), CONFIG, FLOAT32)
        updater.gradients([rows], UpdateInputs(1e-3, WEIGHTS, 0, microbatches))
        vectors.append(updater.gradient_vector())
    np.testing.assert_allclose(vectors[1], vectors[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(vectors[2], vectors[0])


def test_old_searches_may_be_learnt_from():
    assert needs_fresh(CONFIG) is False and needs_fresh(small_config()) is True
