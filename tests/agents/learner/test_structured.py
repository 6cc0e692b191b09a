"""Sub-actions and box actions in the learner: legal examples, the target network's own head, the
magnet."""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs
from league.agents.learner.algorithms.appo import TARGET_LOG_PROBS
from league.agents.learner.algorithms.config import VTraceConfig
from league.agents.learner.algorithms.kl_terms import magnet_sum, magnet_targets
from league.agents.learner.algorithms.loss_stats import sums_of
from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.build import local_updater
from league.agents.learner.data.batch import batch_from, join
from league.agents.learner.step.updater import UpdateInputs
from league.agents.losses.kl import gaussian_kl
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, NetworkOutput
from league.agents.unroll.builder import UnrollBuilder
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.ring import UnrollRing
from league.agents.unroll.unroll import UnrollSpec, concatenate
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    COEFFICIENTS,
    COMMANDS,
    CONTROL,
    CPU,
    ENTITIES,
    FLOAT32,
    LSTM,
    MLP,
    batch_of,
    gradients_of,
    largest_difference,
    network_of,
    rounding_of_sums,
    small_config,
    unrolls_of,
)

ORDER = UpdateInputs(1e-2, LossWeights(0.1, 1.0), oldest_version=0, microbatches_per_block=1)
SQUASHED = NetworkConfig(hidden=(16,), core="lstm", core_size=8, head="tanh_gaussian")


def answers(network: Network, batch) -> NetworkOutput:  # type: ignore[no-untyped-def]
    output: NetworkOutput = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
    return output


def test_example_choices_are_legal_given_those_before_and_differ() -> None:
    network = network_of(COMMANDS, ENTITIES)
    batch = batch_of(COMMANDS, network, rows=32, steps=8)
    log_probs, used, _ = network.head.sub_action_log_probs(answers(network, batch).logits[:, :8], batch.actions)
    assert (log_probs > -1e6).all(), "an illegal choice has a log-probability of about -1e9"
    assert not batch.actions.permute(2, 0, 1)[~used].any()
    for part, num_choices in enumerate(COMMANDS.actions.nvec):
        assert len(batch.actions[..., part].unique()) == num_choices


def test_sub_actions_are_recorded_as_integers() -> None:
    rows = UnrollSpec(COMMANDS, unroll_length=4).allocate(2)
    assert rows.actions.dtype == np.int16 and rows.actions.shape == (2, 4, 3)


@pytest.mark.parametrize(("spec", "config"), [(COMMANDS, ENTITIES), (BOARD_GAME, MLP)])
def test_slow_log_probs_come_from_the_slow_head_and_trunk(spec, config) -> None:
    network = network_of(spec, config, policy_scale=2.0)
    first = copy.deepcopy(network)
    settings = small_config(algorithm="appo", target_every=100)
    updater = local_updater(network, settings, FLOAT32)
    for seed in range(3):
        updater.update([unrolls_of(spec, network, rows=12, steps=5, seed=seed)], ORDER)
    batch = batch_of(spec, network, rows=12, steps=5, seed=9)
    (found,) = updater._with_precomputed([batch], ORDER)
    with torch.no_grad():
        expected = first.head.log_prob(answers(first, batch).logits[:, :5], batch.actions)
        now = network.head.log_prob(answers(network, batch).logits[:, :5], batch.actions)
    torch.testing.assert_close(found.precomputed[TARGET_LOG_PROBS][..., 0], expected)
    assert (now - expected).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("spec", "config"), [(COMMANDS, ENTITIES), (BOARD_GAME, LSTM), (CONTROL, LSTM), (CONTROL, SQUASHED)]
)
def test_magnet_is_zero_at_itself_and_positive_elsewhere(spec, config) -> None:
    network, other = network_of(spec, config, policy_scale=30.0), network_of(spec, config, seed=2, policy_scale=30.0)
    batch = batch_of(spec, network, rows=6, steps=5)
    stats = []
    for target in (network, other):
        fixed = batch.with_precomputed(magnet_targets(target.head, answers(target, batch), batch))
        parameters = answers(network, fixed).logits[:, :5]
        stats.append(magnet_sum(network.head, parameters, fixed))
    assert abs(stats[0].item()) < 1e-3
    assert stats[1].item() > 5e-3
    stats[1].backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())


def test_magnet_counts_only_used_sub_actions_of_learnt_decisions() -> None:
    network, other = network_of(COMMANDS, ENTITIES), network_of(COMMANDS, ENTITIES, seed=2)
    batch = batch_of(COMMANDS, network, rows=6, steps=5)
    fixed = batch.with_precomputed(magnet_targets(other.head, answers(other, batch), batch))
    parameters = answers(network, batch).logits[:, :5].detach()
    whole = magnet_sum(network.head, parameters, fixed)
    halves = [
        magnet_sum(network.head, parameters, dataclasses.replace(fixed, learn=fixed.learn & chosen))
        for chosen in (torch.arange(5) < 2, torch.arange(5) >= 2)
    ]
    torch.testing.assert_close(whole, halves[0] + halves[1])


def test_gaussian_kl_equals_that_of_the_library() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(7, 6, generator=generator) for _ in range(2))
    normals = [
        torch.distributions.Normal(*(part if at == 0 else part.exp() for at, part in enumerate(p.chunk(2, -1))))
        for p in (first, second)
    ]
    expected = torch.distributions.kl_divergence(*normals).sum(-1)
    torch.testing.assert_close(gaussian_kl(first, second), expected)


def test_magnet_of_an_unknown_head_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^magnet_cost: policies of a Linear have no KL in closed form"):
        make_objective(small_config(magnet_cost=0.1), torch.nn.Linear(1, 1))  # type: ignore[arg-type]


def grouped_loss(batch, network, **changes: object):  # type: ignore[no-untyped-def]
    objective = make_objective(small_config(**changes), network.head)
    network.zero_grad(set_to_none=True)
    loss = objective.loss(answers(network, batch), batch, COEFFICIENTS)
    loss.total.backward()
    return sums_of(loss.columns), gradients_of(network)


def test_one_group_of_all_sub_actions_is_the_ratio_of_the_whole_action() -> None:
    network = network_of(COMMANDS, ENTITIES, policy_scale=1.0)
    unrolls = unrolls_of(COMMANDS, network, rows=12, steps=5)
    assert unrolls.sub_action_log_probs is not None
    batch = batch_from(unrolls, oldest_version=0, device=CPU)
    used = network.head.sub_action_log_probs(answers(network, batch).logits[:, :5], batch.actions)[1].permute(1, 2, 0)
    by_sub_action = torch.where(used, batch.sub_action_log_probs, 0.0)
    batch = dataclasses.replace(batch, sub_action_log_probs=by_sub_action, log_probs=by_sub_action.sum(-1))
    whole, whole_gradient = grouped_loss(batch, network)
    one, one_gradient = grouped_loss(batch, network, action_groups=((0, 1, 2),))
    several, several_gradient = grouped_loss(batch, network, action_groups=((0,), (1, 2)))
    assert dataclasses.astuple(one) == pytest.approx(dataclasses.astuple(whole), rel=1e-4, abs=1e-5)
    assert largest_difference(one_gradient, whole_gradient) < 1e-4
    assert largest_difference(several_gradient, whole_gradient) > 1e-2
    assert several.rho_clipped != whole.rho_clipped


def test_groups_are_exact_over_microbatches() -> None:
    updater = local_updater(network_of(COMMANDS, ENTITIES), small_config(action_groups=((0, 2), (1,))), FLOAT32)
    unrolls = unrolls_of(COMMANDS, network_of(COMMANDS, ENTITIES), rows=12, steps=5)
    vectors = []
    for microbatches in (1, 4):
        updater.gradients([unrolls], dataclasses.replace(ORDER, microbatches_per_block=microbatches))
        vectors.append(updater.gradient_vector())
    np.testing.assert_allclose(vectors[1], vectors[0], atol=rounding_of_sums(vectors[0], COMMANDS, rows=12, steps=5))


def test_groups_that_do_not_fit_the_sub_actions_are_refused() -> None:
    head = network_of(COMMANDS, ENTITIES).head
    assert "exactly once" in VTraceConfig(action_groups=((0,), (0, 1))).problems()[0]
    assert "without sub-actions" in VTraceConfig(action_groups=((0,),), policy_loss="neurd").problems()[0]
    with pytest.raises(ValueError, match="2 sub-actions are in groups, the actions have 3"):
        make_objective(small_config(action_groups=((0,), (1,))), head)
    with pytest.raises(ValueError, match="1 sub-actions are in groups, the actions have 0"):
        make_objective(small_config(action_groups=((0,),)), network_of(BOARD_GAME, MLP).head)


def test_log_probs_of_sub_actions_pass_from_the_policy_through_chunk_and_ring_into_the_batch() -> None:
    network = network_of(COMMANDS, ENTITIES, policy_scale=1.0)
    rng = np.random.default_rng(0)
    spec = UnrollSpec.of(COMMANDS, network, unroll_length=5)
    builder = UnrollBuilder(spec, num_rows=6)
    made, acted = None, []
    for _ in range(6):
        seen = {name: array[:, 0] for name, array in unrolls_of(COMMANDS, network, rows=6, steps=1).obs.items()}
        mask = np.ones((6, COMMANDS.actions.num_actions), np.bool_)
        made = builder.observe(np.arange(6), obs=seen, action_mask=mask, rewards=np.zeros(6, np.float32), core=None)
        turn = SimpleNamespace(env_index=np.arange(6), obs=seen, action_mask=mask)
        view = ActInputs(None, turn, np.arange(6), np.zeros((6, network.core_size), np.float32))  # type: ignore[arg-type]
        choice = NetworkPolicy(network).act(view, rng)
        assert choice.sub_action_log_probs is not None
        np.testing.assert_allclose(choice.sub_action_log_probs.sum(-1), choice.log_probs, rtol=1e-5)
        acted.append(choice.sub_action_log_probs)
        builder.act(
            np.arange(6),
            actions=choice.actions,
            log_probs=choice.log_probs,
            versions=np.zeros(6, np.int32),
            sub_action_log_probs=choice.sub_action_log_probs,
        )
    header = ChunkHeader(run="r", player="p", version_min=0, version_max=0)
    _, back = Lz4Codec().decode(Lz4Codec().encode(made, header))
    ring = UnrollRing(spec, capacity=6, pinned=False)
    ring.check(back)
    ring.write(back, at=0)
    found = batch_from(concatenate([ring.read(at=0, count=2), ring.read(at=2, count=4)]), oldest_version=0, device=CPU)
    assert found.sub_action_log_probs is not None
    np.testing.assert_array_equal(found.sub_action_log_probs.numpy(), np.stack(acted[:5], 1))
    assert join(found.microbatches(3)).sub_action_log_probs is not None
