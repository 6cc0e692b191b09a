"""What may be plugged in: every registered entry loads, unknown ones are named, and torch and numpy are enough."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.algorithms import BACKENDS, OBJECTIVES, UPDATE_MODES
from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.build import build_updater, local_updater
from league.agents.learner.replicas.all_reduce import AllReduce
from league.agents.learner.replicas.replica_group import ProcessReplicas
from league.agents.learner.replicas.update_mode import make_update_mode
from league.agents.learner.step.backend import SingleBackend, make_backend
from league.agents.learner.step.updater import UpdateInputs
from league.agents.learner.workers.worker import NetworkPlan
from league.envs.plugin_options import OptionsError
from tests.agents.learner.learner_cases import (
    ACTOR_CRITICS,
    BOARD_GAME,
    FLOAT32,
    MLP,
    batch_of,
    network_of,
    small_config,
    unrolls_of,
)

ALONE = ProcessReplicas(None)


@pytest.mark.parametrize("target", [*BACKENDS.values(), *OBJECTIVES.values(), *UPDATE_MODES.values()])
def test_every_registered_entry_can_be_loaded(target) -> None:
    module, attribute = target.split(":")
    assert callable(getattr(importlib.import_module(module), attribute))


@pytest.mark.parametrize("name", ["impala", "nowhere:Objective", "league.agents.learner.algorithms.ppo:Missing"])
def test_unknown_names_are_refused(name) -> None:
    network = network_of(BOARD_GAME, MLP)
    objective = make_objective(small_config(), network.head)
    with pytest.raises(ValueError, match=f"learner.algorithm {name!r}"):
        make_objective(small_config(algorithm=name), network.head)
    with pytest.raises(ValueError, match=f"learner.pipeline.backend {name!r}"):
        make_backend(network, objective, small_config(backend=name), FLOAT32)
    with pytest.raises(ValueError, match=f"learner.pipeline.update_mode {name!r}"):
        make_update_mode(name, ALONE)


def test_objective_of_ones_own_is_one_line_of_config() -> None:
    objective = make_objective(
        small_config(algorithm="league.agents.learner.algorithms.ppo:PPOObjective"), network_of(BOARD_GAME, MLP).head
    )
    assert objective.passes.current


@pytest.mark.parametrize("name", list(UPDATE_MODES))
def test_update_mode_without_other_replicas_does_what_a_single_learner_does(name) -> None:
    batch = [unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=12, steps=5)]
    inputs = UpdateInputs(1e-2, LossWeights(0.1, 1.0), 0, 1)
    single, other = (
        local_updater(network_of(BOARD_GAME, MLP), small_config(update_mode=mode), FLOAT32)
        for mode in ("all_reduce", name)
    )
    for _ in range(3):
        expected, found = single.update(batch, inputs), other.update(batch, inputs)
        assert found.stats == expected.stats and found.gradient_norm == expected.gradient_norm
        assert (found.skipped_replicas, found.bytes_sent) == (0, 0)
        other.load(other.save())
    np.testing.assert_array_equal(other.weights(), single.weights())


@dataclass(frozen=True)
class HalvedConfig:
    scale: float = 0.5


class Halved(AllReduce):
    """An update mode that changes the gradients."""

    def __init__(self, replicas, options: HalvedConfig) -> None:  # type: ignore[no-untyped-def]
        super().__init__(replicas)
        self.scale = options.scale

    def step(self, vector, sums, *, learning_rate):  # type: ignore[no-untyped-def]
        """Scales them."""
        vector.gradients.mul_(self.scale)
        return super().step(vector, sums, learning_rate=learning_rate)


class Own(SingleBackend):
    """A backend with a name of its own."""

    def __init__(self, network, objective, config, placement, options: HalvedConfig) -> None:  # type: ignore[no-untyped-def]
        super().__init__(network, objective, config, placement)
        self.scale = options.scale


def test_a_backend_and_an_update_mode_of_ones_own_take_options_and_may_change_gradients() -> None:
    backend, mode = ({"kind": f"{__name__}:{name}", "scale": 0.25} for name in ("Own", "Halved"))
    config = small_config(backend=backend, update_mode=mode)
    updater, _ = build_updater(NetworkPlan(BOARD_GAME, MLP, 1), config, dtype=torch.float32)
    plain, _ = build_updater(NetworkPlan(BOARD_GAME, MLP, 1), small_config(), dtype=torch.float32)
    batch = [unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=12, steps=5)]
    inputs = UpdateInputs(1e-2, LossWeights(0.1, 1.0), 0, 1)
    norms = [each.update(batch, inputs).gradient_norm for each in (updater, plain)]
    assert norms[0] == pytest.approx(0.25 * norms[1])
    with pytest.raises(OptionsError, match=r"learner\.pipeline\.update_mode\.scle: unknown key"):
        make_update_mode({"kind": f"{__name__}:Halved", "scle": 1}, ALONE)


@pytest.mark.parametrize("name", ACTOR_CRITICS)
def test_constants_are_cut_with_the_rows(name) -> None:
    network = network_of(BOARD_GAME, MLP)
    config = small_config(algorithm=name, magnet_cost=0.1)
    objective = make_objective(config, network.head)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    output = SingleBackend(network, objective, config, FLOAT32).evaluate([batch])
    precomputed = {
        **objective.precomputed(batch, current=output, total=lambda tensor: tensor),
        **objective.target_precomputed(batch, target=output),
    }
    assert precomputed and all(
        tensor.shape[:2] == (12, 5) and not tensor.requires_grad for tensor in precomputed.values()
    )
    part = batch.with_precomputed(precomputed).rows(4, 8)
    assert all(torch.equal(part.precomputed[key], tensor[4:8]) for key, tensor in precomputed.items())


def test_learner_needs_torch_and_numpy_alone() -> None:
    program = """
import sys
from dataclasses import dataclass

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"lz4", "ray", "gymnasium", "pettingzoo", "msgspec", "wandb", "scipy", "pydantic"}:
            raise ImportError(f"{name} is not on a bare machine")

sys.meta_path.insert(0, Refuse())
import league.agents.learner.build, league.agents.learner.pipeline.torch_pipeline
import league.agents.learner.data.feeder, league.agents.learner.workers.worker_process
parts = {name.split(".")[1] for name in sys.modules if name.startswith("league.")}
assert parts == {"agents", "core", "envs", "higher_wings", "version"}, parts
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120.0)
