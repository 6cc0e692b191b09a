"""The tail and the learner around it: one count, one norm, no non-finite weight, exact restart, schedules, lag."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from league.agents.learner import build
from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.build import build_learner, choose_dtype, local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.errors import NonFiniteError
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.learner.step.optimizer_config import AdamConfig
from league.agents.learner.step.updater import UpdateInputs
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.unroll import Unrolls
from league.agents.weights import WeightsError, layout_of
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec
from tests.agents.learner.learner_cases import BOARD_GAME, FLOAT32, LSTM, MLP, small_config, unrolls_of

NETWORK = build_network(BOARD_GAME, MLP, seed=1)
NEWER = ("value_normalisation", "value_rate")


def learner_of(network_config: NetworkConfig = MLP, **changes: object) -> Learner:
    return build_learner(BOARD_GAME, network_config, small_config(**changes), seed=1, dtype=torch.float32)


def batch(seed: int = 0, *, network: Network = NETWORK) -> Unrolls:
    return unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed)


def poisoned(seed: int = 0) -> Unrolls:
    unrolls = batch(seed)
    unrolls.rewards[np.argwhere(unrolls.valid)[0][0]] = np.nan
    return unrolls


def test_step_divides_by_the_global_count_and_clips_the_global_norm() -> None:
    network = build_network(BOARD_GAME, MLP, seed=1)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    updater = local_updater(network, small_config(max_grad_norm=1e-3), FLOAT32)
    inputs = UpdateInputs(1e-2, LossWeights(0.1, 1.0), 0, 1)
    stats = updater.gradients([batch()], inputs)
    expected = updater.gradient_vector() / stats.steps
    result = updater.update([batch()], inputs)
    assert result.stats.steps == stats.steps == batch().num_steps
    assert result.gradient_norm == pytest.approx(float(np.linalg.norm(expected)), rel=1e-5)
    clipped = torch.from_numpy(expected) * (1e-3 / result.gradient_norm)
    reference = torch.cat([tensor.reshape(-1) for tensor in before]).requires_grad_()
    reference.grad = clipped
    torch.optim.Adam([reference], lr=1e-2, eps=AdamConfig().eps).step()
    np.testing.assert_allclose(updater.weights(), reference.detach().numpy(), rtol=1e-5, atol=1e-7)


def test_one_poisoned_batch_is_skipped_and_counted_and_never_published() -> None:
    learner = learner_of()
    learner.update(batch(0), budget_fraction=0.0)
    weights = learner.publish()
    report = learner.update(poisoned(), budget_fraction=0.0)
    assert report.skipped and math.isnan(report.gradient_norm)
    assert (learner.skipped_updates, learner.version) == (1, 1)
    assert learner.publish().digest() == weights.digest()
    assert not learner.update(batch(1), budget_fraction=0.0).skipped
    assert np.isfinite(learner.publish().vector).all()


def test_a_batch_without_a_decision_to_learn_from_changes_nothing() -> None:
    learner = learner_of(max_policy_lag=5)
    for seed in range(3):
        learner.update(dataclasses.replace(batch(seed), versions=np.full((12, 5), seed, np.int32)), budget_fraction=0.0)
    before = learner.save()
    learner.version += 100
    for empty in (
        dataclasses.replace(batch(3), versions=np.zeros((12, 5), np.int32)),
        dataclasses.replace(batch(4), valid=np.zeros((12, 5), np.bool_)),
    ):
        report = learner.update(empty, budget_fraction=0.0)
        assert (report.steps, report.gradient_norm, report.skipped) == (0, 0.0, False)
    learner.version -= 100
    after = learner.save()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], err_msg=name)


@pytest.mark.parametrize("algorithm", ["ppo", "appo"])
def test_epochs_that_stepped_before_one_that_is_not_finite_count_as_a_version(algorithm: str, monkeypatch) -> None:
    learner = learner_of(algorithm=algorithm, epochs=2)
    norms = itertools.count()
    squared_norm = FlatOptimizer.squared_norm

    def second_is_broken(optimizer: FlatOptimizer):  # type: ignore[no-untyped-def]
        if next(norms) % 2:
            optimizer.gradients.fill_(math.nan)
        return squared_norm(optimizer)

    monkeypatch.setattr(FlatOptimizer, "squared_norm", second_is_broken)
    before = learner.publish().digest()
    report = learner.update(batch(0), budget_fraction=0.0)
    assert report.skipped and learner.skipped_updates == 1
    assert learner.publish().digest() != before
    assert (learner.version, learner.trained_steps) == (1, batch(0).num_steps)


def test_rollback_takes_the_advantage_scale_back_with_the_weights() -> None:
    learner = learner_of(rollback_after=2)
    for seed in range(3):
        learner.update(batch(seed), budget_fraction=0.0)
    good = learner_of()
    good.load(learner.save())
    learner.load(learner.save())
    enlarged = batch(3)
    enlarged.rewards[...] *= 8.0
    learner.update(enlarged, budget_fraction=0.0)
    for _ in range(2):
        learner.update(poisoned(), budget_fraction=0.0)
    np.testing.assert_array_equal(learner.save()["scales"], good.save()["scales"])


def test_rollback_after_k_bad_updates_in_a_row_goes_to_the_last_good_state_under_a_new_version() -> None:
    learner = learner_of(rollback_after=2)
    good = learner.publish()
    for seed in range(3):
        learner.update(batch(seed), budget_fraction=0.0)
    assert learner.publish().digest() != good.digest()
    learner.update(poisoned(), budget_fraction=0.0)
    version = learner.version
    learner.update(poisoned(), budget_fraction=0.0)
    assert learner.publish().digest() == good.digest()
    assert learner.version == version + 1, "other weights must not carry a version that was already published"
    assert not learner.update(batch(0), budget_fraction=0.0).skipped


def test_bad_updates_that_do_not_stop_after_a_rollback_raise() -> None:
    learner = learner_of(rollback_after=2)
    for _ in range(3):
        learner.update(poisoned(), budget_fraction=0.0)
    with pytest.raises(NonFiniteError, match="4 updates in a row"):
        learner.update(poisoned(), budget_fraction=0.0)


def test_weights_that_became_non_finite_are_not_published() -> None:
    network = build_network(BOARD_GAME, MLP, seed=1)
    learner = Learner(local_updater(network, small_config(), FLOAT32), layout_of(network), small_config())
    with torch.no_grad():
        next(network.parameters())[0, 0] = math.inf
    with pytest.raises(WeightsError, match="refusing to publish"):
        learner.publish()


def test_published_weights_are_a_copy_that_nobody_can_write() -> None:
    learner = learner_of()
    weights = learner.publish()
    before = weights.digest()
    learner.update(batch(0), budget_fraction=0.0)
    assert weights.digest() == before and weights.version == 0
    with pytest.raises(ValueError, match="read-only"):
        weights.vector[0] = 1.0


@pytest.mark.parametrize("changes", [{}, {"algorithm": "appo", "epochs": 2}, {"magnet_cost": 0.1}])
def test_saved_and_loaded_learner_continues_bit_for_bit(changes) -> None:
    straight = learner_of(LSTM, **changes)
    network = build_network(BOARD_GAME, LSTM, seed=1)
    for seed in range(3):
        straight.update(batch(seed, network=network), budget_fraction=0.1 * seed)
    resumed = build_learner(BOARD_GAME, LSTM, small_config(**changes), seed=99, dtype=torch.float32)
    resumed.load(straight.save())
    for seed in range(3, 6):
        reports = [learner.update(batch(seed, network=network), budget_fraction=0.3) for learner in (straight, resumed)]
        assert dataclasses.replace(reports[0], update_s=0, waited_s=0) == dataclasses.replace(
            reports[1], update_s=0, waited_s=0
        )
    first, second = straight.save(), resumed.save()
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def test_state_of_another_network_is_refused() -> None:
    with pytest.raises(ValueError, match="parameters, the network has"):
        learner_of(MLP).load(learner_of(LSTM).save())


def test_reset_takes_the_weights_under_a_new_version_and_forgets_the_optimizer_but_not_the_counts() -> None:
    learner, other = learner_of(), build_learner(BOARD_GAME, MLP, small_config(), seed=2, dtype=torch.float32)
    for seed in range(3):
        learner.update(batch(seed), budget_fraction=0.0)
    learner.reset(other.publish())
    assert learner.version == 4 and learner.publish().digest() == other.publish().digest()
    learner.update(batch(4), budget_fraction=0.0)
    other.update(batch(4), budget_fraction=0.0)
    assert learner.publish().digest() == other.publish().digest()
    with pytest.raises(WeightsError, match="another network"):
        learner.reset(learner_of(LSTM).publish())


def test_a_learner_loaded_from_weights_has_their_version_and_the_steps_that_are_given() -> None:
    learner, other = learner_of(), learner_of()
    for seed in range(2):
        other.update(batch(seed), budget_fraction=0.0)
    learner.load_weights(other.publish(), trained_steps=77)
    assert (learner.version, learner.trained_steps) == (2, 77)
    assert learner.publish().digest() == other.publish().digest()
    with pytest.raises(WeightsError, match="another network"):
        learner.load_weights(learner_of(LSTM).publish(), trained_steps=77)


def test_decisions_older_than_the_bound_are_counted_and_not_learnt_from() -> None:
    learner = learner_of(max_policy_lag=2)
    learner.version = 5
    unrolls = batch()
    report = learner.update(unrolls, budget_fraction=0.0)
    ages = 5 - unrolls.versions[unrolls.valid]
    assert report.stale_steps == int((ages > 2).sum()) > 0
    assert report.steps == int((ages <= 2).sum())
    assert report.lag_max == ages.max() and report.lag_mean == pytest.approx(ages.mean())
    assert learner.trained_steps == report.steps


@pytest.mark.parametrize("size", [1, 2, 37, 400])
def test_the_reported_age_of_the_oldest_twentieth_is_numpys_percentile(size: int) -> None:
    learner = learner_of(max_policy_lag=2)
    ages = np.random.default_rng(size).integers(0, 9, size)
    learner.version = 9
    rows = batch(0)
    versions = np.full(rows.versions.shape, 9, np.int32)
    valid = np.zeros(rows.valid.shape, np.bool_)
    chosen = min(size, valid.size)
    valid.flat[:chosen], versions.flat[:chosen] = True, 9 - ages[:chosen]
    report = learner.update(dataclasses.replace(rows, versions=versions, valid=valid), budget_fraction=0.0)
    counted = ages[:chosen]
    assert report.lag_p95 == pytest.approx(np.percentile(counted, 95))
    assert (report.lag_max, report.stale_steps) == (counted.max(), np.count_nonzero(counted > 2))


def test_streamed_blocks_give_the_same_update_as_the_whole_batch() -> None:
    whole, streamed = learner_of(microbatches=4), learner_of(microbatches=4)
    unrolls = batch()
    first = whole.update(unrolls, budget_fraction=0.2)
    second = streamed.update_stream((unrolls.rows(at, at + 3) for at in range(0, 12, 3)), budget_fraction=0.2)
    assert whole.publish().digest() == streamed.publish().digest()
    assert dataclasses.replace(first, update_s=0, waited_s=0) == dataclasses.replace(second, update_s=0, waited_s=0)


def test_streaming_takes_a_block_only_when_the_one_before_is_done() -> None:
    learner = learner_of(microbatches=4)
    times = iter(np.arange(100.0))
    learner._clock = lambda: next(times)
    unrolls, done = batch(), []
    add = learner._updater._backend._add
    learner._updater._backend._add = lambda *given: (done.append("loss"), add(*given))[1]

    def blocks():  # type: ignore[no-untyped-def]
        for at in range(0, 12, 3):
            done.append("block")
            yield unrolls.rows(at, at + 3)

    report = learner.update_stream(blocks(), budget_fraction=0.0)
    assert done == ["block", "loss"] * 4
    assert report.waited_s == 5.0, "one tick of the clock for each wait, the last one ends the iteration"
    assert report.update_s == 11.0


@pytest.mark.parametrize("budget_fraction", [0.0, 0.25, 1.0, 7.0])
def test_schedules_run_linearly_with_the_budget_fraction(budget_fraction) -> None:
    learner = learner_of(learning_rate=1e-2, learning_rate_end=2e-3, entropy_cost=0.5, entropy_cost_end=0.1)
    report = learner.update(batch(), budget_fraction=budget_fraction)
    spent = min(budget_fraction, 1.0)
    assert report.learning_rate == pytest.approx(1e-2 - 8e-3 * spent)
    assert report.entropy_cost == pytest.approx(0.5 - 0.4 * spent)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("vtrace", {}),
        ("ppo", {"epochs": 2}),
        ("appo", {"epochs": 2}),
        ("vtrace", {"policy_loss": "neurd", "neurd_max_logit": 8.0}),
    ],
)
def test_every_algorithm_learns_a_contextual_bandit(algorithm, options) -> None:
    spec = EnvSpec("bandit", 1, {"arm": ArraySpec((4,), "float32")}, ActionSpec("categorical", 4), (0,), has_mask=False)
    config = LearnerConfig(
        unroll_length=4,
        batch_rows=64,
        microbatches=2,
        algorithm={"kind": algorithm, "upgo_cost": 0.1, **options},
        learning_rate=1e-2,
        entropy_cost=0.02,
        entropy_cost_end=0.0,
    )
    network = build_network(spec, NetworkConfig(hidden=(32,)), seed=1)
    acting = build_network(spec, NetworkConfig(hidden=(32,)), seed=1)
    learner = Learner(local_updater(network, config, FLOAT32), layout_of(network), config)
    rng, score = np.random.default_rng(0), 0.0
    for update in range(60):
        acting.load_state_dict(network.state_dict())
        arm = rng.integers(0, 4, (64, 5))
        obs = np.eye(4, dtype=np.float32)[arm]
        with torch.no_grad():
            logits = acting({"arm": torch.from_numpy(obs)}).logits[:, :4]
            noise = torch.from_numpy(rng.random((64, 4, 1), dtype=np.float32))
            actions, log_probs = acting.head.sample(logits, noise)
        rewards = (actions.numpy() == (arm[:, :4] + 1) % 4).astype(np.float32)
        unrolls = Unrolls(
            obs={"arm": obs},
            action_mask=None,
            resets=np.zeros((64, 5), np.bool_),
            actions=actions.numpy(),
            log_probs=log_probs.numpy(),
            rewards=rewards,
            discounts=np.zeros((64, 4), np.float32),
            valid=np.ones((64, 4), np.bool_),
            versions=np.full((64, 4), learner.version, np.int32),
            core=np.zeros((64, 0), np.float32),
        )
        learner.update(unrolls, budget_fraction=update / 60)
        score = float(rewards.mean())
    assert score > 0.9, "random play scores 0.25"


def test_every_impossible_setting_is_named_at_once() -> None:
    config = LearnerConfig(
        batch_rows=10,
        microbatches=3,
        gamma=0.0,
        precision="int8",
        learning_rate=0.0,
        pipeline=PipelineConfig(schedule="zigzag", stages=0),
        value_normalisation="batch",
        value_rate=0.0,
    )
    found = " | ".join(config.problems())
    for name in (
        "batch_rows: 10",
        "gamma",
        "precision",
        "pipeline.schedule",
        "learning_rate",
        "pipeline.stages",
        *NEWER,
    ):
        assert name in found
    with pytest.raises(ValueError, match="gamma"):
        build_learner(BOARD_GAME, MLP, config, seed=0, dtype=torch.float32)


@pytest.mark.parametrize(("few_s", "rows"), [(0.001, build.TIMED_ROWS), (0.1, build.FEW_ROWS)])
@pytest.mark.parametrize(("share", "dtype"), [(0.5, torch.bfloat16), (1.0, torch.float32)])
def test_the_faster_type_is_found_by_fewer_rows_where_a_pass_is_long(
    few_s: float, rows: int, share: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []

    def time_of_pass(
        network: object, spec: object, kind: torch.dtype, device: object, *, rows: int, passes: int
    ) -> float:
        timed.append(rows)
        return few_s * rows / build.FEW_ROWS * (share if kind == torch.bfloat16 else 1.0)

    monkeypatch.setattr(build, "_time_of_pass", time_of_pass)
    monkeypatch.setattr(build, "CPU_BFLOAT16", True)
    assert choose_dtype(BOARD_GAME, MLP, "auto") == dtype
    assert timed == [build.FEW_ROWS, rows, rows]


def test_auto_tries_no_type_that_the_processor_has_no_instructions_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "CPU_BFLOAT16", False)
    monkeypatch.setattr(build, "_time_of_pass", lambda *given, **named: pytest.fail("timed a type it may not choose"))
    assert choose_dtype(BOARD_GAME, MLP, "auto") == torch.float32
    assert choose_dtype(BOARD_GAME, MLP, "bfloat16") == torch.bfloat16, "one that is asked for has a slower path"
    assert build.candidate_dtypes("auto", torch.device("cuda")) == [torch.float32, torch.bfloat16]


def test_precision_synonyms_mean_the_same() -> None:
    for names, dtype in ((("bf16", "bfloat16"), torch.bfloat16), (("fp32", "float32"), torch.float32)):
        for name in names:
            assert choose_dtype(BOARD_GAME, MLP, name) == dtype
            assert not LearnerConfig(precision=name).problems()
