"""What only bites on GPUs, shown without one: overwritten answers, cold process groups, stages on another device."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
import torch
import torch.distributed as dist

from league.agents.learner import build
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import build_learner, build_updater
from league.agents.learner.errors import GradientCheckError
from league.agents.learner.gradient_check import ACROSS_DEVICES, MAX_DIFFERENCE, tolerance
from league.agents.learner.step.backend import SingleBackend
from league.agents.learner.workers.distributed_updater import UpdaterGroup
from league.agents.learner.workers.worker import NetworkPlan, WorkerSetup, warm_up
from league.agents.learner.workers.worker_group import ProcessWorkerGroup
from league.agents.nets.network import Network, NetworkOutput
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    FLOAT32,
    LSTM,
    MLP,
    batch_of,
    network_of,
    small_config,
    unrolls_of,
)

pytestmark = pytest.mark.xdist_group("forked workers")  # those with stages share the server

ROWS, STEPS = 12, 5
STAGES = {"stages": 2, "microbatches": 2}


def replay_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled networks answer as CUDA graphs do: every pass writes into the tensors of the pass before."""

    def compiled(network: Network, **_options: object) -> None:
        plain, held = network.forward, dict[torch.Size, NetworkOutput]()

        def replayed(*given, **named):  # type: ignore[no-untyped-def]
            answer = plain(*given, **named)
            if torch.is_grad_enabled():
                return answer
            kept = held.setdefault(answer.logits.shape, answer)
            for field in dataclasses.fields(NetworkOutput):
                getattr(kept, field.name).copy_(getattr(answer, field.name))
            return kept

        network.forward = replayed  # type: ignore[method-assign]

    monkeypatch.setattr(Network, "compile", compiled)


@pytest.mark.parametrize("microbatches", [1, 4])
def test_answers_of_a_replayed_graph_are_kept_before_the_next_pass(microbatches: int, monkeypatch) -> None:
    replay_graphs(monkeypatch)
    network = network_of(BOARD_GAME, LSTM)
    parts = batch_of(BOARD_GAME, network, rows=ROWS, steps=STEPS).microbatches(microbatches)
    config = small_config(microbatches=microbatches)
    objective = make_objective(config, network.head)
    expected = SingleBackend(network, objective, config, FLOAT32).evaluate(parts)
    replaying = dataclasses.replace(config, compile_mode="reduce-overhead")
    backend = SingleBackend(network, objective, replaying, FLOAT32)
    answers = backend.evaluate(parts)
    backend.evaluate(
        list(reversed(batch_of(BOARD_GAME, network, rows=ROWS, steps=STEPS, seed=1).microbatches(microbatches)))
    )
    assert answers is not None and expected is not None
    for field in dataclasses.fields(NetworkOutput):
        torch.testing.assert_close(getattr(answers, field.name), getattr(expected, field.name), rtol=0, atol=0)


@pytest.mark.parametrize("changes", [{"algorithm": "ppo"}, {"algorithm": "appo"}, {"magnet_cost": 0.1}])
def test_updates_with_replayed_graphs_equal_those_without(changes: dict[str, object], monkeypatch) -> None:
    replay_graphs(monkeypatch)
    unrolls = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, LSTM), rows=ROWS, steps=STEPS)
    digests = []
    for mode in ("none", "reduce-overhead"):
        config = small_config(microbatches=3, compile_mode=mode, **changes)
        learner = build_learner(BOARD_GAME, LSTM, config, seed=1, dtype=torch.float32)
        learner.update(unrolls, budget_fraction=0.0)
        learner.update(unrolls, budget_fraction=0.0)
        digests.append(learner.publish().digest())
    assert digests[0] == digests[1]


def test_a_compiled_network_with_wrong_gradients_is_noticed_at_the_start(monkeypatch) -> None:
    def spoilt(network: Network, **_options: object) -> None:
        plain = network.forward

        def doubled(*given, **named):  # type: ignore[no-untyped-def]
            answer = plain(*given, **named)
            return dataclasses.replace(answer, values=2.0 * answer.values - answer.values.detach())

        network.forward = doubled  # type: ignore[method-assign]

    monkeypatch.setattr(Network, "compile", spoilt)
    with pytest.raises(GradientCheckError, match="wrong gradients"):
        build_learner(BOARD_GAME, MLP, small_config(compile_mode="default"), seed=1, dtype=torch.float32)


def test_a_compiled_network_is_probed_in_the_size_that_it_will_be_trained_in(monkeypatch) -> None:
    shapes = []

    def noting(network: Network, **_options: object) -> None:
        network.register_forward_pre_hook(
            lambda _network, _given, named: shapes.append(tuple(named["resets"].shape)), with_kwargs=True
        )

    monkeypatch.setattr(Network, "compile", noting)
    learner = build_learner(
        BOARD_GAME, MLP, small_config(compile_mode="default", microbatches=3), seed=1, dtype=torch.float32
    )
    probed = set(shapes)
    learner.update(unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=ROWS, steps=STEPS), budget_fraction=0.0)
    assert probed == set(shapes) == {(4, 6)}


def test_every_group_of_a_worker_is_connected_before_the_first_batch(monkeypatch) -> None:
    connected = []
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, group: connected.append((tuple(tensor.shape), group)))
    pipe, replicas = object(), object()
    warm_up((pipe, None, replicas), torch.device("cpu"))  # type: ignore[arg-type]
    assert connected == [((1,), pipe), ((1,), replicas)]


def test_workers_of_a_group_connect_when_they_start() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        warm_up((dist.new_group([0]), None), torch.device("cpu"))
    finally:
        dist.destroy_process_group()


def test_stages_on_cpus_are_timed_and_checked_on_the_cpu_whatever_the_learner_itself_has(monkeypatch) -> None:
    monkeypatch.setattr(build, "default_device", lambda: torch.device("meta"))  # a device that holds no numbers
    plan = NetworkPlan(BOARD_GAME, MLP, seed=1)
    updater, _ = build_updater(plan, small_config(**STAGES), dtype=torch.float32)
    try:
        assert isinstance(updater, UpdaterGroup) and updater.device_type == "cpu"
    finally:
        updater.close()


def test_stages_are_placed_on_the_device_that_was_decided(monkeypatch) -> None:
    placed: list[str] = []

    def launch(setups: Sequence[WorkerSetup]) -> ProcessWorkerGroup:
        placed.extend(setup.device for setup in setups)
        return ProcessWorkerGroup(setups)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(build, "default_device", lambda: torch.device("cpu"))
    updater, _ = build_updater(
        NetworkPlan(BOARD_GAME, MLP, seed=1),
        small_config(**STAGES),
        dtype=torch.float32,
        launcher=launch,
        stage_device=torch.device("cpu"),
    )
    updater.close()
    assert placed == ["cpu", "cpu"]


def test_gradients_of_another_device_may_differ_by_its_rounding() -> None:
    assert tolerance(torch.float32, same_device=True) == MAX_DIFFERENCE[torch.float32]
    assert tolerance(torch.float32, same_device=False) == ACROSS_DEVICES
    assert tolerance(torch.bfloat16, same_device=False) == MAX_DIFFERENCE[torch.bfloat16]
