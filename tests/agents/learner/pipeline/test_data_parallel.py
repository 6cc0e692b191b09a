"""Threads of a learner: the gradient and the updates of one thread, and batches that are given up."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import build_learner
from league.agents.learner.data.batch import Batch
from league.agents.learner.errors import StageHungError
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline.data_parallel import DataParallelBackend
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network
from tests.agents.learner.learner_cases import (
    ACTOR_CRITICS,
    BOARD_GAME,
    COEFFICIENTS,
    CPU,
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

POPART = NetworkConfig(hidden=(16,), value_output="popart")
DEADLINE_S = 30.0


def backend_of(network: Network, placement: Placement = FLOAT32, **changes: object) -> DataParallelBackend:
    """A backend of four threads, unless stated otherwise, for a network whose gradients are 0."""
    clear(network)
    config = small_config(**{"threads": 4, **changes})
    return DataParallelBackend(network, make_objective(config, network.head), config, placement)


def clear(network: Network) -> None:
    """Gradients of 0, as the optimizer leaves them before a batch."""
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)


def learner_of(config: NetworkConfig = MLP, **changes: object) -> Learner:
    return build_learner(BOARD_GAME, config, small_config(**changes), seed=1, dtype=torch.float32)


@pytest.mark.parametrize(("spec", "config"), GAMES_AND_NETWORKS)
@pytest.mark.parametrize("threads", [2, 3])
def test_the_gradient_of_several_threads_is_that_of_one_in_float64(monkeypatch, spec, config, threads) -> None:
    keep_float64(monkeypatch)
    network, settings = network_of(spec, config).double(), small_config()
    batch, placement = in_float64(batch_of(spec, network, rows=12, steps=5)), Placement(torch.float64, CPU)
    single = SingleBackend(network, make_objective(settings, network.head), settings, placement)
    clear(network)
    stats, expected = single.accumulate([batch], COEFFICIENTS), gradients_of(network)
    backend = backend_of(network, placement, threads=threads)
    for _ in range(2):  # the second batch finds the threads, and gradients of the first in their copies
        clear(network)
        found = backend.accumulate(batch.microbatches(6), COEFFICIENTS)
        assert largest_difference(gradients_of(network), expected) < 1e-12
        torch.testing.assert_close(found.columns, stats.columns, rtol=1e-10, atol=1e-12)
    output, whole = backend.evaluate(batch.microbatches(6)), single.evaluate([batch])
    assert output is not None and whole is not None
    torch.testing.assert_close(output.logits, whole.logits, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(output.core, whole.core, rtol=1e-12, atol=1e-12)
    backend.close()
    backend.close()


def test_equal_batches_have_equal_gradients_bit_for_bit() -> None:
    network = network_of(BOARD_GAME, LSTM)
    batch, backend = batch_of(BOARD_GAME, network, rows=12, steps=5), backend_of(network)
    found = []
    for _ in range(20):
        clear(network)
        backend.accumulate(batch.microbatches(12), COEFFICIENTS)
        found.append(gradients_of(network))
    assert all(largest_difference(one, found[0]) == 0.0 for one in found)
    backend.close()


@pytest.mark.parametrize("algorithm", ACTOR_CRITICS)
@pytest.mark.parametrize("changes", [{}, {"magnet_cost": 0.1}])
def test_a_learner_with_threads_makes_the_updates_of_one_without(algorithm, changes) -> None:
    learners = [learner_of(LSTM, algorithm=algorithm, threads=threads, **changes) for threads in (1, 3)]
    network = network_of(BOARD_GAME, LSTM)
    for seed in range(3):
        unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed)
        expected, found = (learner.update(unrolls, budget_fraction=0.0) for learner in learners)
        for field in ("loss_policy", "loss_value", "entropy", "gradient_norm"):
            assert getattr(found, field) == pytest.approx(getattr(expected, field), rel=1e-4, abs=1e-6)
        assert (found.steps, found.version) == (expected.steps, expected.version)
    vectors = [learner.publish().vector for learner in learners]
    np.testing.assert_allclose(vectors[1], vectors[0], rtol=1e-2, atol=1e-3)
    for learner in learners:
        learner.close()


def test_moments_of_the_values_are_those_of_the_whole_batch() -> None:
    learners = [
        learner_of(POPART, value_normalisation="popart", value_rate=0.2, threads=threads, learning_rate=1e-4)
        for threads in (1, 4)
    ]
    network = network_of(BOARD_GAME, POPART, policy_scale=1.0)
    for seed in range(5):
        for learner in learners:
            learner.update(unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed), budget_fraction=0.0)
    vectors = [learner.publish().vector for learner in learners]
    np.testing.assert_allclose(vectors[1], vectors[0], rtol=1e-3, atol=2e-4)
    for learner in learners:
        learner.close()


def test_a_batch_in_one_piece_needs_no_other_thread() -> None:
    network = network_of(BOARD_GAME, MLP)
    backend, before = backend_of(network), threading.active_count()
    backend.accumulate([batch_of(BOARD_GAME, network, rows=12, steps=5)], COEFFICIENTS)
    assert threading.active_count() == before


def test_a_stream_is_learnt_from_by_as_many_threads_as_the_caller_says() -> None:
    learner = learner_of(threads=4)
    plain = learner_of()
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=12, steps=5)
    for threads in (1, 2, 4):
        found = learner.update_stream([unrolls], budget_fraction=0.0, threads=threads)
        expected = plain.update(unrolls, budget_fraction=0.0)
        assert found.loss_value == pytest.approx(expected.loss_value, rel=1e-4)
    learner.close()


def test_a_batch_that_is_given_up_leaves_nothing_behind() -> None:
    network = network_of(BOARD_GAME, MLP)
    batch, backend = batch_of(BOARD_GAME, network, rows=12, steps=5), backend_of(network)
    backend.accumulate(batch.microbatches(4), COEFFICIENTS)
    expected = gradients_of(network)

    def broken() -> Iterator[Batch]:
        yield from batch.microbatches(6)[:4]
        raise TimeoutError("no more rows")

    with pytest.raises(TimeoutError):
        backend.accumulate(broken(), COEFFICIENTS)
    clear(network)
    backend.accumulate(batch.microbatches(4), COEFFICIENTS)
    assert largest_difference(gradients_of(network), expected) == 0.0
    backend.close()


@pytest.mark.parametrize("failing", ["learner-thread", "MainThread"])
def test_an_error_in_any_thread_reaches_the_caller_and_the_next_batch_works(monkeypatch, failing) -> None:
    network = network_of(BOARD_GAME, MLP)
    batch, backend = batch_of(BOARD_GAME, network, rows=12, steps=5), backend_of(network)
    backend.accumulate(batch.microbatches(4), COEFFICIENTS)
    expected, plain = gradients_of(network), SingleBackend._add

    def add(self, microbatch, loss_weights):  # type: ignore[no-untyped-def]
        if threading.current_thread().name.startswith(failing):
            raise RuntimeError("a layer failed")
        return plain(self, microbatch, loss_weights)

    monkeypatch.setattr(SingleBackend, "_add", add)
    with pytest.raises(RuntimeError, match="a layer failed"):
        backend.accumulate(batch.microbatches(4), COEFFICIENTS)
    monkeypatch.undo()
    clear(network)
    backend.accumulate(batch.microbatches(4), COEFFICIENTS)
    assert largest_difference(gradients_of(network), expected) == 0.0
    backend.close()


def test_a_thread_that_hangs_is_given_up_and_a_learner_goes_back_to_its_last_good_state(monkeypatch) -> None:
    learner, release = learner_of(threads=2, stage_timeout_s=0.5), threading.Event()
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=12, steps=5)
    before, plain = learner.publish().vector, SingleBackend._add

    def add(self, microbatch, loss_weights):  # type: ignore[no-untyped-def]
        if threading.current_thread().name.startswith("learner-thread"):
            release.wait(DEADLINE_S)
        return plain(self, microbatch, loss_weights)

    monkeypatch.setattr(SingleBackend, "_add", add)
    report = learner.update(unrolls, budget_fraction=0.0)
    assert report.skipped and learner.restarts == 1
    np.testing.assert_array_equal(learner.publish().vector, before)
    monkeypatch.undo()
    release.set()
    expected = learner_of().update(unrolls, budget_fraction=0.0)
    assert learner.update(unrolls, budget_fraction=0.0).gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-4)
    learner.close()


def test_a_late_thread_is_named_with_its_deadline(monkeypatch) -> None:
    network, release = network_of(BOARD_GAME, MLP), threading.Event()
    backend = backend_of(network, stage_timeout_s=0.1)
    plain = SingleBackend._add

    def add(self, microbatch, loss_weights):  # type: ignore[no-untyped-def]
        if threading.current_thread().name.startswith("learner-thread"):
            release.wait(DEADLINE_S)
        return plain(self, microbatch, loss_weights)

    monkeypatch.setattr(SingleBackend, "_add", add)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    with pytest.raises(StageHungError, match=r"3 threads of the learner did not end within 0\.1 s"):
        backend.accumulate(batch.microbatches(4), COEFFICIENTS)
    release.set()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"threads": 0}, "pipeline.threads: 0 is not between"),
        ({"threads": 2, "stages": 2, "microbatches": 2}, "pipeline.threads: backend torch_pipeline cuts no rows"),
        ({"threads": 2, "backend": "single"}, "pipeline.threads: backend single cuts no rows"),
        ({"threads": 2, "replicas": 2}, "pipeline.replicas: 2 replicas in processes do not go with 2 threads"),
        ({"threads": 2, "microbatches": 2}, "microbatches: 2 threads cut the batch themselves"),
        ({"threads": 2, "compile_mode": "default"}, "compile_mode: default is for a network in one thread"),
        ({"threads": 5}, "batch_rows: 12 rows do not cut into equal parts for 5 threads"),
    ],
)
def test_impossible_threads_are_named(changes: dict[str, object], problem: str) -> None:
    found = small_config(**changes).problems()
    assert any(one.startswith(problem) for one in found), found


def test_one_thread_is_the_plain_backend() -> None:
    assert small_config().pipeline.backend_name == "single"
    several = small_config(threads=4)
    assert several.pipeline.backend_name == "data_parallel" and several.pieces == 4
    assert not several.problems()
    assert dataclasses.replace(several, microbatches=1).pipeline.num_workers == 0
