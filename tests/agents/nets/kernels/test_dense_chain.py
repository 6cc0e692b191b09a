"""Dense layers as one compiled function, against the same layers in float64."""

from __future__ import annotations

import ctypes
import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from league.agents.nets.kernels import compiled, dense_chain
from league.agents.nets.kernels.dense import Dense
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, batch_of, network_of

NEEDS_KERNEL = pytest.mark.skipif(
    compiled.library("dense_chain") is None, reason="no C compiler, or a processor without AVX2"
)


def layers_of(widths: Sequence[int], *, last: str = "none") -> list[Dense]:
    torch.manual_seed(len(widths) + sum(widths))
    pairs = list(itertools.pairwise(widths))
    return [Dense(*pair, relu=number + 1 < len(pairs) or last == "relu") for number, pair in enumerate(pairs)]


def exact(inputs: Tensor, layers: Sequence[Dense]) -> Tensor:
    for layer in layers:
        inputs = nn.functional.linear(inputs, layer.weight.double(), layer.bias.double())
        inputs = inputs.relu() if layer.activation == "relu" else inputs
    return inputs


@NEEDS_KERNEL
@pytest.mark.parametrize("rows", [1, 11, 12, 95, 97, 200])
@pytest.mark.parametrize("widths", [(84, 128, 128, 8), (3, 5, 1), (17, 33, 40, 64, 7), (256, 256, 300)])
@pytest.mark.parametrize("last", ["none", "relu"])
def test_outputs_and_gradients_are_those_of_the_layers(rows, widths, last) -> None:
    layers = layers_of(widths, last=last)
    inputs = torch.randn(rows, widths[0])
    gradient = torch.randn(rows, widths[-1])
    found = []
    for run, given in ((dense_chain.dense_chain, inputs.clone()), (exact, inputs.double())):
        assert run is exact or dense_chain.takes(given, layers)
        for layer in layers:
            layer.zero_grad()
        outputs = run(given.requires_grad_(), layers)
        outputs.backward(gradient.to(outputs.dtype))
        gradients = [parameter.grad.double() for layer in layers for parameter in (layer.weight, layer.bias)]
        found.append([outputs.detach().double(), given.grad.double(), *gradients])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=3e-6 * float(theirs.abs().max() + 1))


@NEEDS_KERNEL
def test_leading_axes_and_strides_of_the_inputs_do_not_matter() -> None:
    layers = layers_of((6, 20, 4))
    inputs = torch.randn(5, 6, 3).transpose(1, 2)
    with torch.no_grad():
        found = dense_chain.dense_chain(inputs, layers)
        expected = dense_chain.dense_chain(inputs.reshape(15, 6).clone(), layers)
    assert found.shape == (5, 3, 4)
    assert torch.equal(found.reshape(15, 4), expected)


@NEEDS_KERNEL
def test_no_row_depends_on_the_others() -> None:
    layers = layers_of((30, 40, 50, 9))
    inputs = torch.randn(300, 30)
    with torch.no_grad():
        whole = dense_chain.dense_chain(inputs, layers)
        pieces = torch.cat([dense_chain.dense_chain(part, layers) for part in inputs.split(7)])
    assert torch.equal(whole, pieces)


@NEEDS_KERNEL
@pytest.mark.parametrize("where", ["inputs", "weight"])
def test_what_is_not_a_number_is_not_hidden_by_a_relu(where) -> None:
    layers = layers_of((4, 8, 8, 3))
    inputs = torch.randn(20, 4)
    with torch.no_grad():
        (inputs if where == "inputs" else layers[0].weight)[0, 0] = float("nan")
    outputs = dense_chain.dense_chain(inputs, layers)
    outputs.sum().backward()
    assert bool(outputs[0].isnan().all())
    assert any(bool(layer.weight.grad.isnan().any()) for layer in layers)


@NEEDS_KERNEL
def test_only_small_layers_of_float32_on_a_cpu_are_taken() -> None:
    layers, inputs = layers_of((8, 16, 4)), torch.randn(3, 8)
    assert dense_chain.takes(inputs, layers)
    assert not dense_chain.takes(inputs.double(), layers)
    assert not dense_chain.takes(inputs.to("meta"), layers)
    assert not dense_chain.takes(inputs, layers[:1])
    assert not dense_chain.takes(inputs, [Dense(8, 1 << 15), Dense(1 << 15, 4)])


@NEEDS_KERNEL
def test_a_network_gives_the_same_with_and_without_it(monkeypatch) -> None:
    network = network_of(BOARD_GAME, MLP)
    batch = batch_of(BOARD_GAME, network, rows=6, steps=5)
    asked, outputs = [], []
    forward = dense_chain._Call.forward
    monkeypatch.setattr(dense_chain._Call, "forward", lambda self: asked.append(self) or forward(self))
    for is_compiled in (True, False):
        if not is_compiled:
            monkeypatch.setattr(dense_chain, "takes", lambda *_: False)
        outputs.append(network(batch.obs, action_mask=batch.action_mask))
    assert len(asked) == 1
    torch.testing.assert_close(outputs[0].logits, outputs[1].logits, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(outputs[0].values, outputs[1].values, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(compiled._processor_flags() != compiled.AVX512, reason="a processor without AVX-512")
@NEEDS_KERNEL
def test_vectors_of_either_width_give_equal_numbers(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    layers, inputs, found = layers_of((84, 128, 128, 8)), torch.randn(333, 84), []
    for flags in (compiled.AVX2, compiled.AVX512):
        monkeypatch.setattr(compiled, "_processor_flags", lambda flags=flags: flags)
        kernel = dense_chain.declared(fresh_library())
        monkeypatch.setattr(dense_chain, "_kernel", lambda kernel=kernel: kernel)
        for layer in layers:
            layer.zero_grad()
        outputs = dense_chain.dense_chain(inputs, layers)
        outputs.square().sum().backward()
        found.append([outputs.detach(), *(layer.weight.grad.clone() for layer in layers)])
    assert all(torch.equal(narrow, wide) for narrow, wide in zip(*found, strict=True))
    assert len(list((tmp_path / "league" / "kernels").glob("*.so"))) == 2


def fresh_library() -> ctypes.CDLL:
    """The library as another process would get it."""
    found = compiled.library.__wrapped__("dense_chain")
    assert found is not None
    return found


def test_without_a_compiler_the_layers_run_one_by_one(monkeypatch, tmp_path, caplog) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiled, "_processor_flags", lambda: compiled.AVX2)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with caplog.at_level("INFO"):
        assert compiled.library.__wrapped__("dense_chain") is None
    assert "there is no C compiler" in caplog.text
    monkeypatch.setattr(dense_chain, "_kernel", lambda: None)
    layers, inputs = layers_of((4, 6, 2)), torch.randn(5, 4)
    torch.testing.assert_close(dense_chain.dense_chain(inputs, layers).double(), exact(inputs.double(), layers))


@NEEDS_KERNEL
def test_a_file_that_is_not_whole_is_compiled_again(monkeypatch, tmp_path) -> None:
    built, sizes = Path(), []
    for home in ("whole", "broken"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
        folder = compiled._own_folder()
        if home == "broken":
            Path(folder, built.name).write_bytes(built.read_bytes()[:100])
        assert fresh_library().league_row(8) == 16
        (built,) = folder.glob("*.so")
        sizes.append(built.stat().st_size)
    assert sizes[0] == sizes[1] > 100


@NEEDS_KERNEL
def test_code_is_not_loaded_from_a_folder_that_others_may_write_to(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "league" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert compiled.library.__wrapped__("dense_chain") is None
    folder.chmod(0o700)
    assert compiled.library.__wrapped__("dense_chain") is not None


def test_a_variable_of_the_environment_switches_it_off(monkeypatch) -> None:
    monkeypatch.setenv(compiled.SWITCH, "0")
    assert compiled.library.__wrapped__("dense_chain") is None
