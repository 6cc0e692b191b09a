"""What a batch's gradient may depend on, and what not: microbatches, garbage, stale rows, the order of rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.config import VTraceConfig
from league.agents.learner.algorithms.loss_inputs import scaled_rewards
from league.agents.learner.algorithms.loss_stats import LossStats, sums_of
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import group_problems
from league.agents.learner.data.batch import Batch, batch_from, join
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.losses.policy import normalise_advantages
from league.agents.nets.network import Network
from league.envs.protocol import SEAT_GROUP
from tests.agents.learner.learner_cases import (
    ACTOR_CRITICS,
    BOARD_GAME,
    COEFFICIENTS,
    COMMANDS,
    FLOAT32,
    GAMES_AND_NETWORKS,
    LSTM,
    MLP,
    batch_of,
    gradients_of,
    in_float64,
    keep_float64,
    largest_difference,
    network_of,
    small_config,
    unrolls_of,
)


def gradient(network: Network, batch: Batch, *, microbatches: int = 1, **changes: object) -> tuple[dict, LossStats]:
    """The summed gradient by plain accumulation, constants made from the network itself."""
    config = small_config(microbatches=microbatches, **changes)
    objective = make_objective(config, network.head)
    dtype = next(network.parameters()).dtype
    backend = SingleBackend(network, objective, config, Placement(dtype=dtype, device=FLOAT32.device))
    parts = batch.microbatches(microbatches)
    if objective.passes.current or objective.passes.target:
        output = backend.evaluate(parts)
        precomputed = {
            **objective.precomputed(join(parts), current=output, total=lambda tensor: tensor),
            **objective.target_precomputed(join(parts), target=output),
        }
        parts = batch.with_precomputed(precomputed).microbatches(microbatches)
    network.zero_grad(set_to_none=True)
    loss = backend.accumulate(parts, COEFFICIENTS)
    return gradients_of(network), sums_of(loss.columns)


@pytest.mark.parametrize(("spec", "config"), GAMES_AND_NETWORKS)
@pytest.mark.parametrize("algorithm", ACTOR_CRITICS)
def test_microbatched_gradient_equals_the_whole_batch_in_float64(monkeypatch, spec, config, algorithm) -> None:
    keep_float64(monkeypatch)
    network = network_of(spec, config).double()
    batch = in_float64(batch_of(spec, network, rows=12, steps=5))
    whole, whole_sums = gradient(network, batch, algorithm=algorithm)
    for microbatches in (3, 12):
        parts, stats = gradient(network, batch, microbatches=microbatches, algorithm=algorithm)
        assert largest_difference(parts, whole) < 1e-12
        np.testing.assert_allclose(dataclasses.astuple(stats), dataclasses.astuple(whole_sums), rtol=1e-10)


@pytest.mark.parametrize("algorithm", ACTOR_CRITICS)
def test_scaled_rewards_are_learnt_from_as_if_the_game_had_paid_them(algorithm: str) -> None:
    network = network_of(BOARD_GAME, LSTM)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    paid = dataclasses.replace(batch, rewards=batch.rewards * 0.5)
    changes = {"algorithm": algorithm, "normalise_advantages": False}
    scaled, stats = gradient(network, batch, reward_scales=(0.5,), **changes)
    assert largest_difference(scaled, gradient(network, paid, **changes)[0]) == 0.0
    assert stats != gradient(network, batch, **changes)[1]


def test_each_seat_group_has_its_own_factor_of_rewards() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=4, steps=5)
    marks = torch.zeros(4, 6, 2, dtype=torch.bool)
    marks[:3, :, 0], marks[3:, :, 1] = True, True
    grouped = dataclasses.replace(batch, obs={**batch.obs, SEAT_GROUP: marks})
    found = scaled_rewards(grouped, (2.0, 0.25))
    assert torch.equal(found[:3], 2.0 * batch.rewards[:3]) and torch.equal(found[3:], 0.25 * batch.rewards[3:])


def test_impossible_factors_of_rewards_are_named() -> None:
    (problem,) = small_config(reward_scales=(1.0, 0.0)).problems()
    assert problem.startswith("reward_scales: [1.0, 0.0]")
    (problem,) = group_problems(BOARD_GAME, small_config(reward_scales=(1.0, 2.0)))
    assert problem.startswith("reward_scales: 2 factors") and "there are none" in problem
    assert not group_problems(BOARD_GAME, small_config(reward_scales=(2.0,)))


@pytest.mark.parametrize(("spec", "config"), GAMES_AND_NETWORKS)
def test_optional_terms_are_exact_over_microbatches_too(monkeypatch, spec, config) -> None:
    keep_float64(monkeypatch)
    # Ratios of a scaled head with many layers are so small that no upgoing advantage would be left.
    network = network_of(spec, config, policy_scale=1.0 if spec is COMMANDS else 50.0).double()
    batch = in_float64(batch_of(spec, network, rows=12, steps=5))
    terms = {"upgo_cost": 0.7, "magnet_cost": 0.3}
    whole, _ = gradient(network, batch, **terms)
    parts, _ = gradient(network, batch, microbatches=4, **terms)
    plain, _ = gradient(network, batch)
    assert largest_difference(parts, whole) < 1e-12
    assert largest_difference(plain, whole) > 1e-3


@pytest.mark.parametrize("algorithm", ACTOR_CRITICS)
def test_garbage_in_steps_that_are_not_valid_changes_nothing(algorithm) -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    wrong = ~batch.valid
    assert wrong.any()
    spoilt = dataclasses.replace(
        batch,
        log_probs=torch.where(wrong, -1e4, batch.log_probs),
        rewards=torch.where(wrong, 1e30, batch.rewards),
    )
    clean, clean_sums = gradient(network, batch, algorithm=algorithm, upgo_cost=0.5)
    dirty, dirty_sums = gradient(network, spoilt, algorithm=algorithm, upgo_cost=0.5)
    assert largest_difference(dirty, clean) == 0.0
    assert dirty_sums == clean_sums


def test_too_old_decisions_count_and_pull_nothing_but_still_carry_the_trace() -> None:
    network = network_of(BOARD_GAME, MLP)
    unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5)
    fresh = batch_from(unrolls, oldest_version=0, device=FLOAT32.device)
    masked = batch_from(unrolls, oldest_version=3, device=FLOAT32.device)
    assert int(fresh.learn.sum()) == unrolls.num_steps
    assert torch.equal(masked.valid, fresh.valid)
    stale = torch.from_numpy(unrolls.valid & (unrolls.versions < 3))
    assert torch.equal(fresh.learn & ~masked.learn, stale)
    kept, kept_sums = gradient(network, masked)
    assert kept_sums.steps == int(masked.learn.sum())
    # Every decision alone: the sum over the kept ones is the gradient, targets computed with all of them in the trace.
    alone = [torch.zeros_like(tensor) for tensor in kept.values()]
    for row, step in torch.nonzero(masked.learn).tolist():
        only = torch.zeros_like(masked.learn)
        only[row, step] = True
        one, _ = gradient(network, dataclasses.replace(masked, learn=only))
        for total, tensor in zip(alone, one.values(), strict=True):
            total.add_(tensor)
    assert largest_difference(dict(zip(kept, alone, strict=True)), kept) < 1e-5


def test_permuting_rows_permutes_nothing_in_the_gradient() -> None:
    network = network_of(BOARD_GAME, LSTM)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    inputs = np.random.default_rng(3).permutation(12)
    shuffled = join([batch.rows(row, row + 1) for row in inputs.tolist()])
    assert largest_difference(gradient(network, shuffled)[0], gradient(network, batch)[0]) < 1e-5


def test_advantage_scale_divides_the_policy_term_alone() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    config = small_config()
    objective = make_objective(config, network.head)
    output = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
    losses = {}
    for scale in (1.0, 4.0):
        loss_weights = dataclasses.replace(COEFFICIENTS, advantage_scale=scale)
        loss = objective.loss(output, batch, loss_weights)
        stats = sums_of(loss.columns)
        losses[scale] = stats
        expected = stats.policy + VTraceConfig().value_cost * stats.value - loss_weights.entropy_cost * stats.entropy
        assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert losses[4.0].policy == pytest.approx(losses[1.0].policy / 4.0, rel=1e-5)
    assert losses[4.0].value == losses[1.0].value
    assert losses[4.0].squared_advantage == losses[1.0].squared_advantage


def test_advantages_are_standardised_over_the_decisions_of_all_replicas() -> None:
    rng = np.random.default_rng(0)
    advantages = torch.from_numpy(3.0 + 5.0 * rng.normal(size=(5, 12)).astype(np.float32))
    learn = torch.from_numpy(rng.random((5, 12)) < 0.7)
    picked = advantages[learn].double()
    whole = torch.where(learn, (advantages.double() - picked.mean()) / picked.std(), 0.0).float()
    torch.testing.assert_close(normalise_advantages(advantages, valid=learn, total=lambda tensor: tensor), whole)
    halves = [(advantages[:, :6], learn[:, :6]), (advantages[:, 6:], learn[:, 6:])]
    chosen = [part[mask].double() for part, mask in halves]
    mean = torch.cat(chosen).mean()
    stats = iter(
        [
            torch.stack([learn.sum().double(), torch.cat(chosen).sum()]),
            sum(((part - mean) ** 2).sum() for part in chosen)[None],
        ]
    )
    torch.testing.assert_close(
        normalise_advantages(halves[0][0], valid=halves[0][1], total=lambda _: next(stats)), whole[:, :6]
    )


def test_bfloat16_gradient_points_where_float32_does() -> None:
    network = network_of(BOARD_GAME, LSTM, policy_scale=5.0)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    objective = make_objective(small_config(), network.head)
    vectors = []
    for dtype in (torch.float32, torch.bfloat16):
        backend = SingleBackend(network, objective, small_config(), Placement(dtype=dtype, device=FLOAT32.device))
        network.zero_grad(set_to_none=True)
        backend.accumulate([batch], COEFFICIENTS)
        vectors.append(torch.cat([tensor.reshape(-1) for tensor in gradients_of(network).values()]))
    assert vectors[1].dtype == torch.float32
    assert torch.cosine_similarity(*vectors, dim=0) > 0.99


def test_rows_that_do_not_divide_are_refused_with_the_numbers() -> None:
    network = network_of(BOARD_GAME, MLP)
    with pytest.raises(ValueError, match="12 rows do not cut into 5"):
        batch_of(BOARD_GAME, network, rows=12, steps=5).microbatches(5)
