"""A teacher from imported: the KL that holds a policy to it, its weights through updates, restarts and stages."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.kl_terms import TEACHER, teacher_sum, teacher_targets
from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.build import build_learner, local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.errors import StageDiedError
from league.agents.learner.learner import Learner
from league.agents.learner.step.updater import UpdateInputs
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, NetworkOutput
from league.agents.weights import Weights, WeightsError, layout_of
from league.envs.protocol import EnvSpec
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    COMMANDS,
    CONTROL,
    ENTITIES,
    FLOAT32,
    LSTM,
    MLP,
    batch_of,
    network_of,
    rounding_of_sums,
    small_config,
    unrolls_of,
)
from tests.oracles.policy_losses import kl, softmax

ORDER = UpdateInputs(1e-2, LossWeights(0.0, 1.0, teacher_cost=0.5), oldest_version=0, microbatches_per_block=1)


def weights_of(network: Network) -> Weights:
    vector = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])
    return Weights(vector.numpy().copy(), layout_of(network), version=7)


def answers(network: Network, batch) -> NetworkOutput:  # type: ignore[no-untyped-def]
    output: NetworkOutput = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
    return output


def taught(
    spec: EnvSpec = BOARD_GAME, config: NetworkConfig = MLP, *, teacher: Network | None = None, **changes: object
) -> Learner:
    """A learner whose teacher is a network of another seed."""
    teacher = network_of(spec, config, seed=2) if teacher is None else teacher
    return build_learner(
        spec, config, small_config(**changes), seed=1, dtype=torch.float32, teacher=weights_of(teacher)
    )


def test_term_is_the_kl_from_teacher_to_policy_over_the_learnt_decisions() -> None:
    network, teacher = network_of(BOARD_GAME, MLP), network_of(BOARD_GAME, MLP, seed=2)
    batch = batch_of(BOARD_GAME, network, rows=6, steps=5)
    logits, wanted = (answers(one, batch).logits[:, :5] for one in (network, teacher))
    fixed = batch.with_precomputed(teacher_targets(teacher.head, answers(teacher, batch), batch))
    expected = sum(
        kl(softmax(wanted[row, step].tolist()), [max(p, 1e-30) for p in softmax(logits[row, step].tolist())])
        for row, step in torch.nonzero(batch.learn).tolist()
    )
    assert teacher_sum(network.head, logits, fixed).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("spec", "config"), [(COMMANDS, ENTITIES), (BOARD_GAME, LSTM), (CONTROL, LSTM)])
def test_every_head_is_pulled_to_its_teacher_and_stays_there(spec, config) -> None:
    network, other = network_of(spec, config, policy_scale=30.0), network_of(spec, config, seed=2, policy_scale=30.0)
    batch = batch_of(spec, network, rows=6, steps=5)
    stats = []
    for teacher in (network, other):
        fixed = batch.with_precomputed(teacher_targets(teacher.head, answers(teacher, batch), batch))
        stats.append(teacher_sum(network.head, answers(network, fixed).logits[:, :5], fixed))
    assert abs(stats[0].item()) < 1e-3
    assert stats[1].item() > 5e-3
    stats[1].backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())


@pytest.mark.parametrize("algorithm", ["vtrace", "ppo", "appo"])
def test_policy_comes_to_do_as_its_teacher_does(algorithm: str) -> None:
    teacher = network_of(BOARD_GAME, MLP, seed=2, policy_scale=400.0)
    costs = {"teacher_cost": 1.0, "teacher_cost_end": 1.0, "entropy_cost": 0.0, "entropy_cost_end": 0.0}
    learner = taught(teacher=teacher, algorithm=algorithm, learning_rate=1e-2, normalise_advantages=False, **costs)
    reports = []
    for seed in range(60):
        unrolls = unrolls_of(BOARD_GAME, teacher, rows=12, steps=5, seed=seed)
        silent = dataclasses.replace(unrolls, rewards=np.zeros_like(unrolls.rewards))
        reports.append(learner.update(silent, budget_fraction=0.0))
    assert reports[0].teacher_kl > 0.3
    assert reports[-1].teacher_kl < 0.25 * reports[0].teacher_kl
    assert reports[-1].loss_extra == pytest.approx(reports[-1].teacher_kl)


def test_teacher_of_a_policy_with_memory_begins_each_unroll_with_an_empty_one() -> None:
    network, teacher = network_of(BOARD_GAME, LSTM), network_of(BOARD_GAME, LSTM, seed=2)
    updater = local_updater(network, small_config(teacher_cost=0.5), FLOAT32)
    updater.load({"values": updater.weights(), "teacher": weights_of(teacher).vector})
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    (found,) = updater._with_precomputed([batch], ORDER)
    with torch.no_grad():
        blank = dataclasses.replace(batch, core=torch.zeros_like(batch.core))
        expected, wrong = (answers(teacher, one).logits[:, :5] for one in (blank, batch))
    torch.testing.assert_close(found.precomputed[TEACHER], expected)
    assert (found.precomputed[TEACHER] - wrong).abs().max() > 1e-3
    torch.testing.assert_close(found.core, batch.core)


def test_teacher_term_is_exact_over_microbatches_and_leaves_the_weights_alone() -> None:
    network = network_of(BOARD_GAME, LSTM)
    updater = local_updater(network, small_config(teacher_cost=0.5), FLOAT32)
    before = updater.weights()
    updater.load({"values": before, "teacher": weights_of(network_of(BOARD_GAME, LSTM, seed=2)).vector})
    unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5)
    vectors = []
    plain = dataclasses.replace(ORDER, loss_weights=LossWeights(0.0, 1.0))
    for inputs in (ORDER, dataclasses.replace(ORDER, microbatches_per_block=4), plain):
        updater.gradients([unrolls], inputs)
        vectors.append(updater.gradient_vector())
    largest = np.abs(vectors[0]).max()
    np.testing.assert_allclose(vectors[1], vectors[0], atol=rounding_of_sums(vectors[0], BOARD_GAME, rows=12, steps=5))
    assert np.abs(vectors[2] - vectors[0]).max() > 1e-4 * largest
    np.testing.assert_array_equal(updater.weights(), before)


def test_weight_of_the_teacher_follows_its_schedule_and_at_zero_nothing_is_computed() -> None:
    learner = taught(teacher_cost=0.4, teacher_cost_end=0.0)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=12, steps=5)
    half = learner.update(unrolls, budget_fraction=0.5)
    assert half.loss_extra == pytest.approx(0.2 * half.teacher_kl) and half.teacher_kl > 0
    end = learner.update(unrolls, budget_fraction=1.0)
    assert (end.loss_extra, end.teacher_kl) == (0.0, 0.0)


def test_teacher_outlives_reset_and_restart_and_is_in_no_restart_state() -> None:
    costs = {"teacher_cost": 0.5, "teacher_cost_end": 0.5}
    network = network_of(BOARD_GAME, MLP)
    unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5)
    first, second = taught(**costs), taught(**costs)
    first.reset(weights_of(network))
    saved = first.save()
    assert saved["teacher"].size == 0
    second.load(saved)
    reports = [learner.update(unrolls, budget_fraction=0.0) for learner in (first, second)]
    assert reports[0].teacher_kl == reports[1].teacher_kl > 0


class LosesAWorker:
    """An updater whose workers die in the first update; notes what it is told to go on from."""

    def __init__(self) -> None:
        self.loaded: list[set[str]] = []

    def update(self, blocks, inputs, *, ahead):  # type: ignore[no-untyped-def]
        raise StageDiedError("worker 1 died")

    def save(self):  # type: ignore[no-untyped-def]
        return {"values": np.zeros(3, np.float32), "teacher": np.zeros(0, np.float32)}

    def load(self, saved):  # type: ignore[no-untyped-def]
        self.loaded.append({name for name, array in saved.items() if array.size})


def test_workers_that_start_again_are_given_the_teacher_again() -> None:
    updater, network = LosesAWorker(), network_of(BOARD_GAME, MLP)
    config = small_config(teacher_cost=0.5)
    learner = Learner(updater, layout_of(network), config, teacher=np.ones(3, np.float32))  # type: ignore[arg-type]
    assert learner.update(unrolls_of(BOARD_GAME, network, rows=12, steps=5), budget_fraction=0.0).skipped
    assert updater.loaded == [{"values", "teacher"}]


SPREADS = {
    "threaded_pipeline": {"backend": "threaded_pipeline", "stages": 2, "microbatches": 2},
    "torch_pipeline": {"backend": "torch_pipeline", "stages": 2, "microbatches": 2, "stage_timeout_s": 20.0},
}


@pytest.mark.xdist_group("forked workers")
@pytest.mark.parametrize("name", list(SPREADS))
def test_stages_have_the_teacher_of_one_process(name: str) -> None:
    costs = {"teacher_cost": 0.5, "teacher_cost_end": 0.5}
    network = network_of(BOARD_GAME, LSTM)
    single, spread = taught(config=LSTM, **costs), taught(config=LSTM, **costs, **SPREADS[name])
    try:
        for seed in range(2):
            unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed)
            expected, found = (learner.update(unrolls, budget_fraction=0.1) for learner in (single, spread))
            assert (
                found.teacher_kl == pytest.approx(expected.teacher_kl, rel=1e-4, abs=1e-7) and found.teacher_kl > 1e-6
            )
            assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-4)
    finally:
        spread.close()


def test_teacher_that_cannot_stand_in_for_the_policy_is_refused_in_one_sentence() -> None:
    costs = {"teacher_cost": 0.5}
    with pytest.raises(ValueError, match=r"teacher_cost: 0.5 to 0.0 needs the teacher's weights"):
        build_learner(BOARD_GAME, MLP, small_config(**costs), seed=1, dtype=torch.float32)
    with pytest.raises(WeightsError, match=r"the teacher has another network \(\d+ numbers\) than the policy"):
        taught(teacher=network_of(BOARD_GAME, LSTM), **costs)
    broken = network_of(BOARD_GAME, MLP)
    with torch.no_grad():
        next(broken.parameters())[0] = float("nan")
    with pytest.raises(WeightsError, match="is nan"):
        taught(teacher=broken, **costs)
    with pytest.raises(ValueError, match=r"^teacher_cost: policies of a Linear have no KL in closed form"):
        make_objective(small_config(**costs), torch.nn.Linear(1, 1))  # type: ignore[arg-type]
    assert "flee" in LearnerConfig(teacher_cost=-0.1).problems()[0]
