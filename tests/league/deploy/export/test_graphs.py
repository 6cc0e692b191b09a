"""Exported graphs compute what their network computes, and a graph that does not is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

from benchmarks.watch.graph_cases import CASES
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.nets.network_parts import CORES, ENCODERS, HEADS
from league.agents.nets.seat_groups import SeatGroupNetworks
from league.deploy.export import graphs
from league.deploy.export.exporter import export_policy
from league.deploy.export.graphs import GraphDiffers, compared, make_graphs
from league.deploy.export.importer import verify_package
from league.deploy.export.inputs import random_inputs
from league.deploy.export.step_module import StepModule
from league.envs.component_choice import kind_of
from league.envs.protocol import EnvSpec
from league.errors import LeagueError
from tests.league.judge.matches.eval_runs import FOUR, MadeRun, network_of, scaled


def built(name: str) -> tuple[EnvSpec, Network]:
    spec, config = CASES[name]
    return spec, build_network(spec, config, seed=1).eval().requires_grad_(False)


def test_every_part_of_the_registries_is_in_the_cases() -> None:
    configs = [config for _, config in CASES.values()]
    assert {config.encoder for config in configs} == set(ENCODERS)
    assert {kind_of(config.core) for config in configs} == {*CORES, "none"}
    used = {spec.actions.kind if config.head == "auto" else kind_of(config.head) for spec, config in CASES.values()}
    assert used == set(HEADS)


def test_a_package_with_onnx_plays_as_the_network_over_steps_of_memory(tmp_path: Path) -> None:
    network = NetworkConfig(hidden=(), core="lstm", core_size=4)
    made = MadeRun(tmp_path / "run", env=FOUR, network=network)
    source = scaled(network_of(made.config, seed=1))
    made.snapshot("main-0", source)
    exported = export_policy(made.close(), tmp_path / "package", graphs=["onnx", "torch_export"])
    graph, of_torch = exported.manifest.graphs
    assert max(one.parity.max_difference for one in (graph, of_torch)) <= 1e-5 and graph.parity.steps > 1
    assert verify_package(exported.path).num_bytes > 0

    program = torch.export.load(exported.path / of_torch.file).module()
    ((obs, mask),) = random_inputs(exported.manifest.game.facts.spec(), rows=5, steps=1, seed=0)
    assert program(obs["board"], mask, torch.zeros(5, 8))[0].shape == (5, 7)

    # By the file alone, as another program would, with its own loop over the core state.
    session = onnxruntime.InferenceSession(exported.path / graph.file, providers=["CPUExecutionProvider"])
    spec = exported.manifest.game.facts.spec()
    core, own = np.zeros((2, 8), np.float32), torch.zeros(2, 8)
    for obs, mask in random_inputs(spec, rows=2, steps=3, seed=9):
        assert mask is not None
        given = {"obs.board": obs["board"].numpy(), "action_mask": mask.numpy(), "core": core}
        dist_params, value, core = session.run(["dist_params", "value", "next_core"], given)
        with torch.inference_mode():
            wanted = source.step(obs, core=own, action_mask=mask)
        own = wanted.core
        for found, want in ((dist_params, wanted.logits), (value, wanted.values), (core, wanted.core)):
            np.testing.assert_allclose(found, want.numpy(), atol=2e-4, rtol=1e-5)  # logits are of the order of 100


def test_a_graph_that_differs_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, network = built("no_hidden")
    module = StepModule(network, spec)

    def shifted(by: float) -> graphs.Run:
        return lambda *tensors: tuple(output + by * (output.abs() < 1e6) for output in module(*tensors))

    assert compared(module, module, shifted(3e-5), spec).max_difference > 1e-5
    assert compared(module, module, shifted(0.0), spec).max_difference == 0.0

    def broken(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(output * float("nan") for output in module(*tensors))

    assert compared(module, module, broken, spec).max_difference == float("inf")
    monkeypatch.setattr(graphs, "traced", lambda module, spec: None)
    monkeypatch.setattr(graphs, "_torch_export", lambda program: (b"", shifted(3e-5)))
    with pytest.raises(GraphDiffers, match="was not exported"):
        make_graphs(["torch_export"], network, spec, member="x", stem="model")


@pytest.mark.parametrize("name", ["groups", "groups_lstm", "groups_box"])
def test_all_groups_at_once_equal_the_groups_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, network = built(name)
    first = network.blocks[0].module
    assert isinstance(first, SeatGroupNetworks)
    for obs, mask in random_inputs(spec, rows=9, steps=3, seed=4):
        core = torch.rand(9, network.core_size)
        wanted = network.step(obs, core=core, action_mask=mask)
        with monkeypatch.context() as patch:
            patch.setattr(torch.compiler, "is_exporting", lambda: True)
            found = network.step(obs, core=core, action_mask=mask)
        for output in ("logits", "values", "core"):
            torch.testing.assert_close(getattr(found, output), getattr(wanted, output), rtol=1e-6, atol=1e-6)


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, network = built("no_hidden")

    def absent(*args: object, **kwargs: object) -> None:
        raise ModuleNotFoundError("onnxscript")

    monkeypatch.setattr(graphs, "traced", lambda module, spec: None)
    monkeypatch.setattr(torch.onnx, "export", absent)
    with pytest.raises(LeagueError, match=r"install the extra `export`"):
        make_graphs(["onnx"], network, spec, member="x", stem="model")


@pytest.mark.parametrize(("wanted", "given"), [(np.nan, 0.0), (0.0, np.nan), (np.inf, np.inf), (-np.inf, 1.0)])
def test_a_number_that_is_not_finite_never_passes_for_equal(wanted: float, given: float) -> None:
    assert graphs._difference([(torch.tensor([wanted]),)], [(torch.tensor([given]),)]) == np.inf


@pytest.mark.parametrize("name", ["uniform_mix", "impala_resnet", "dict", "transformer", "lstm"])
def test_a_file_of_numpy_alone_is_the_network(name: str) -> None:
    spec, network = built(name)
    ((graph, _),) = make_graphs(["numpy"], network, spec, member="x", stem="model")
    assert graph.file == "model.py" and graph.parity.max_difference <= 1e-5


def test_the_exported_file_plays_where_there_is_no_torch(tmp_path: Path) -> None:
    network = NetworkConfig(hidden=(8,), core="lstm", core_size=4)
    made = MadeRun(tmp_path / "run", env=FOUR, network=network)
    made.snapshot("main-0", network_of(made.config, seed=1))
    exported = export_policy(made.close(), tmp_path / "package", graphs=["numpy"])
    program = f"""
import sys
sys.modules["torch"] = None
sys.path.insert(0, {str(exported.path)!r})
import numpy as np
from model import Policy
board, mask = np.zeros((2, 6, 7), np.bool_), [False] * 3 + [True] * 4
drawn = {{Policy(seed).act({{"board": board}}, mask) for seed in range(40)}}
policy = Policy(greedy=True)
first = [policy.act({{"board": board}}, mask) for _ in range(3)]
policy.reset()
print(drawn, first == [policy.act({{"board": board}}, mask) for _ in range(3)])
"""
    ran = subprocess.run([sys.executable, "-I", "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "{3, 4, 5, 6} True\n", ran.stderr
