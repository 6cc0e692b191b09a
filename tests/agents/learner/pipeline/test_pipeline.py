"""Schedules, cuts and the pipeline of threads: exact gradients, no deadlock, stated deadlines, balanced stages."""

from __future__ import annotations

import dataclasses
import itertools
import threading

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.loss_stats import sums_of
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import build_learner
from league.agents.learner.errors import GradientCheckError, StageHungError
from league.agents.learner.gradient_check import compare
from league.agents.learner.pipeline.partition import balance, plan_pipeline
from league.agents.learner.pipeline.schedules import Task, ideal_bubble, makespan, tasks_of
from league.agents.learner.pipeline.stages import boundaries_of, cut_network, even_cut
from league.agents.learner.pipeline.threaded_pipeline import ThreadedPipelineBackend
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.nets.kernels import dense_chain
from league.agents.weights import layout_of
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
    TRANSFORMER,
    TWIN_LSTM,
    batch_of,
    gradients_of,
    in_float64,
    keep_float64,
    largest_difference,
    network_of,
    small_config,
    unrolls_of,
)

CASES = [(BOARD_GAME, MLP), (BOARD_GAME, LSTM), (BOARD_GAME, TWIN_LSTM), (CONTROL, LSTM)]
SIZES = [(2, 2), (2, 5), (3, 4), (4, 8), (5, 3)]


def pipe_of(network, *, stages: int, placement: Placement = FLOAT32, **changes: object) -> ThreadedPipelineBackend:
    config = small_config(backend="threaded_pipeline", stages=stages, **changes)
    return ThreadedPipelineBackend(network, make_objective(config, network.head), config, placement)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_schedule_does_every_pass_once_forward_before_backward(schedule, stages, microbatches) -> None:
    for stage in range(stages):
        tasks = tasks_of(schedule, stage=stage, num_stages=stages, num_microbatches=microbatches)
        wanted = {Task(backward, index) for backward in (False, True) for index in range(microbatches)}
        assert set(tasks) == wanted and len(tasks) == len(wanted)
        for index in range(microbatches):
            assert tasks.index(Task(False, index)) < tasks.index(Task(True, index))
        held = list(itertools.accumulate(-1 if task.backward else 1 for task in tasks))
        assert max(held) == (microbatches if schedule == "gpipe" else min(microbatches, stages - stage))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_equal_stages_idle_as_the_formula_says_and_never_deadlock(schedule, stages, microbatches) -> None:
    span = makespan(schedule, forward_s=[1.0] * stages, backward_s=[2.0] * stages, num_microbatches=microbatches)
    bubble = ideal_bubble(schedule, num_stages=stages, num_microbatches=microbatches)
    assert 1 - 3.0 * microbatches / span == pytest.approx(bubble)


def test_interleaving_divides_the_bubble() -> None:
    plain = ideal_bubble("1f1b", num_stages=4, num_microbatches=8)
    looped = ideal_bubble("interleaved", num_stages=8, num_microbatches=8, stages_per_worker=2)
    assert plain == pytest.approx(3 / 11) and looped == pytest.approx(3 / 19)


def test_slowest_stage_bounds_the_makespan() -> None:
    span = makespan("1f1b", forward_s=[0.5, 2.0, 0.75, 0.75], backward_s=[1.0, 4.0, 1.5, 1.5], num_microbatches=8)
    assert 8 * 6.0 < span <= 8 * 6.0 + 0.5 + 1.0 + 0.75 * 2 + 1.5 * 2


@pytest.mark.parametrize("num_stages", [1, 2, 3, 4])
def test_balance_finds_the_best_of_all_cuts(num_stages) -> None:
    rng = np.random.default_rng(num_stages)
    for _ in range(20):
        seconds = rng.random(7).tolist()
        found = balance(seconds, num_stages)
        assert sum(found) == 7 and len(found) == num_stages

        def slowest(cut, seconds=tuple(seconds)) -> float:  # type: ignore[no-untyped-def]
            ends = list(itertools.accumulate(cut))
            return max(sum(seconds[end - size : end]) for end, size in zip(ends, cut, strict=True))

        every = [
            tuple(np.diff([0, *inner, 7]).tolist()) for inner in itertools.combinations(range(1, 7), num_stages - 1)
        ]
        assert slowest(found) == pytest.approx(min(slowest(cut) for cut in every))


def test_plan_says_the_cut_the_bubble_and_the_memory() -> None:
    network = network_of(BOARD_GAME, MLP)
    config = small_config(stages=2, microbatches=4)
    ticks = itertools.count()
    plan = plan_pipeline(
        network,
        make_objective(config, network.head),
        batch_of(BOARD_GAME, network, rows=3, steps=5),
        config,
        FLOAT32,
        clock=lambda: float(next(ticks)),
    )
    assert plan.cut == (2, 2), "every block takes one tick each way"
    assert plan.predicted_bubble == pytest.approx(1 / 5)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    saved = [sum(block.saved_bytes for block in stage) for stage in plan.stages]
    assert min(saved) > 0
    assert plan.memory_bytes(0) + plan.memory_bytes(1) == 16 * parameters + 2 * saved[0] + saved[1]
    text = plan.describe()
    assert "predicted bubble 20%" in text and "stage 1: encoder_2 + heads" in text
    assert all(parameter.grad is None for parameter in network.parameters())


def test_more_stages_than_blocks_are_refused_with_the_numbers() -> None:
    with pytest.raises(ValueError, match="4 blocks cannot be cut into 5 stages"):
        even_cut(4, 5)
    with pytest.raises(ValueError, match=r"1\+2 blocks does not fit the 4 blocks"):
        cut_network(network_of(BOARD_GAME, MLP), (1, 2))


@pytest.mark.parametrize(("spec", "config"), CASES)
def test_stages_one_after_the_other_are_the_network(spec, config, monkeypatch) -> None:
    monkeypatch.setattr(dense_chain, "takes", lambda *_: False)  # it sums in another order than the stages do
    network = network_of(spec, config)
    batch = batch_of(spec, network, rows=6, steps=5)
    whole = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
    features = None
    for stage in cut_network(network, (1,) * len(network.blocks)):
        features = stage.run(features, batch)
    torch.testing.assert_close(features.logits, whole.logits, rtol=0, atol=0)
    torch.testing.assert_close(features.values, whole.values, rtol=0, atol=0)


def test_boundaries_state_what_leaves_each_stage() -> None:
    network = network_of(BOARD_GAME, LSTM)
    stages = cut_network(network, (1, 1, 1))
    batch = batch_of(BOARD_GAME, network, rows=2, steps=5)
    found = boundaries_of(stages, batch, Placement(dtype=torch.bfloat16, device=CPU))
    assert [(boundary.inner, boundary.dtype) for boundary in found] == [
        ((16,), torch.bfloat16),
        ((8,), torch.bfloat16),
        ((5,), torch.float32),
    ]


@pytest.mark.parametrize(("spec", "config"), CASES)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_thread_pipeline_gradient_equals_the_whole_batch_in_float64(monkeypatch, spec, config, schedule) -> None:
    keep_float64(monkeypatch)
    network = network_of(spec, config).double()
    batch = in_float64(batch_of(spec, network, rows=12, steps=5))
    placement = Placement(dtype=torch.float64, device=CPU)
    single = SingleBackend(network, make_objective(small_config(), network.head), small_config(), placement)
    expected_stats = sums_of(single.accumulate([batch], COEFFICIENTS).columns)
    expected = gradients_of(network)
    stages = len(network.blocks)
    pipe = pipe_of(network, stages=stages, microbatches=6, schedule=schedule, placement=placement)
    for _ in range(2):
        network.zero_grad(set_to_none=True)
        stats = sums_of(pipe.accumulate(batch.microbatches(6), COEFFICIENTS).columns)
        assert largest_difference(gradients_of(network), expected) < 1e-12
        np.testing.assert_allclose(dataclasses.astuple(stats), dataclasses.astuple(expected_stats), rtol=1e-10)
    pipe.close()


@pytest.mark.parametrize(("spec", "config"), [(BOARD_GAME, TRANSFORMER), (COMMANDS, ENTITIES)])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_every_kind_of_block_can_be_cut_anywhere(spec, config, stages) -> None:
    network = network_of(spec, config, policy_scale=1.0)
    batch = batch_of(spec, network, rows=12, steps=5)
    single = SingleBackend(network, make_objective(small_config(), network.head), small_config(), FLOAT32)
    single.accumulate([batch], COEFFICIENTS)
    expected = gradients_of(network)
    for parameter in network.parameters():
        parameter.grad = None
    boundaries_of(cut_network(network, even_cut(len(network.blocks), stages)), batch, FLOAT32)
    pipe = pipe_of(network, stages=stages, microbatches=4)
    pipe.accumulate(batch.microbatches(4), COEFFICIENTS)
    pipe.close()
    assert largest_difference(gradients_of(network), expected) < 1e-5


def test_thread_pipeline_starts_on_rows_that_have_arrived() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    pipe = pipe_of(network, stages=2, microbatches=4)
    began = threading.Event()
    network.blocks[0].module.register_forward_hook(lambda *_: began.set())

    def arriving():  # type: ignore[no-untyped-def]
        first, *rest = batch.microbatches(4)
        yield first
        assert began.wait(timeout=60.0), "the first stage waits for rows that it does not need yet"
        yield from rest

    pipe.accumulate(arriving(), COEFFICIENTS)
    pipe.close()


def test_error_in_a_stage_reaches_the_caller_and_the_next_batch_works() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    pipe = pipe_of(network, stages=3, microbatches=4)
    spoil = network.blocks[2].module.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pipe.accumulate(batch.microbatches(4), COEFFICIENTS)
    spoil.remove()
    network.zero_grad(set_to_none=True)
    pipe.accumulate(batch.microbatches(4), COEFFICIENTS)
    pipe.close()
    pipe.close()
    assert len(gradients_of(network)) == len(list(network.parameters()))


def test_stage_that_hangs_is_named_within_the_deadline() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    pipe = pipe_of(network, stages=2, microbatches=2, stage_timeout_s=0.3)
    release = threading.Event()
    network.blocks[3].module.register_forward_pre_hook(lambda *_: release.wait(timeout=30.0) and None)
    with pytest.raises(StageHungError, match="stage 1 did 0 of 4 tasks"):
        pipe.accumulate(batch.microbatches(2), COEFFICIENTS)
    hung = next(thread for thread in threading.enumerate() if thread.name == "stage-1")
    assert not pipe._threads
    release.set()
    hung.join(timeout=30.0)
    assert not gradients_of(network), "a stage that comes to itself again must not go on with a batch given up"
    pipe.accumulate(batch.microbatches(2), COEFFICIENTS)
    pipe.close()


def test_wrong_number_of_microbatches_is_refused() -> None:
    network = network_of(BOARD_GAME, MLP)
    pipe = pipe_of(network, stages=2, microbatches=4)
    with pytest.raises(ValueError, match="given 3 microbatches, it is set up for 4"):
        pipe.accumulate(batch_of(BOARD_GAME, network, rows=12, steps=5).microbatches(3), COEFFICIENTS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("algorithm", ["vtrace", "ppo"])
def test_learner_on_a_thread_pipeline_makes_the_same_updates_as_single(dtype, algorithm) -> None:
    learners = [
        build_learner(BOARD_GAME, LSTM, small_config(algorithm=algorithm, **changes), seed=1, dtype=dtype)
        for changes in ({}, {"backend": "threaded_pipeline", "stages": 3, "microbatches": 4})
    ]
    network = network_of(BOARD_GAME, LSTM)
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    for seed in range(3):
        unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed)
        expected, found = (learner.update(unrolls, budget_fraction=0.0) for learner in learners)
        assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=tolerance)
        assert found.loss_value == pytest.approx(expected.loss_value, rel=tolerance)
    for learner in learners:
        learner.close()


def test_parity_probe_names_the_parameter_whose_gradient_is_wrong() -> None:
    layout = layout_of(network_of(BOARD_GAME, LSTM))
    expected = np.random.default_rng(0).normal(size=layout.size).astype(np.float32)
    found = expected * np.float32(1 + 1e-6)
    assert compare(found, expected, layout=layout, at_most=1e-4) < 1e-5
    name = "parts.core.lstm.weight_hh_l1"
    start = sum(layout.sizes[: layout.names.index(name)])
    for wrong in (found[start] + 0.05, np.nan):
        spoilt = found.copy()
        spoilt[start] = wrong
        with pytest.raises(GradientCheckError, match=r"weight_hh_l1.*at most 1e-04"):
            compare(spoilt, expected, layout=layout, at_most=1e-4)


def test_backend_with_wrong_gradients_is_refused_before_training(monkeypatch) -> None:
    plain = ThreadedPipelineBackend._backward

    def doubled(self, stage, run, features, result):  # type: ignore[no-untyped-def]
        plain(self, stage, run, features, 2.0 * result if stage.is_last else result)

    monkeypatch.setattr(ThreadedPipelineBackend, "_backward", doubled)
    config = small_config(backend="threaded_pipeline", stages=2, microbatches=4)
    with pytest.raises(GradientCheckError, match="wrong gradients"):
        build_learner(BOARD_GAME, MLP, config, seed=1, dtype=torch.float32)
