"""The kernels serve only where a trial found them right."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from league.agents.nets.kernels import feed_forward, gpu, sets, trial

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
HOPPER = 228 << 10


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch):
    """Each test is the first of its process, beside a GPU that is the CPU; afterwards no kernel is trusted."""
    plain, memory = trial.largest_error, SimpleNamespace(shared_memory_per_multiprocessor=HOPPER)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    monkeypatch.setattr(trial, "largest_error", lambda device: plain(CPU))
    trial.try_kernels.cache_clear()
    yield memory
    gpu.trust_kernels(are_right=False)
    trial.try_kernels.cache_clear()


def serves() -> bool:
    """True if a pass over features on a GPU would use the kernels."""
    features = SimpleNamespace(device=GPU, dtype=torch.bfloat16)
    return gpu.learns_on_gpu(features)  # type: ignore[arg-type]


def test_right_kernels_serve_learners_alone() -> None:
    assert not serves()
    assert trial.try_kernels(GPU)
    assert serves()
    with torch.no_grad():
        assert not serves()
    assert not gpu.learns_on_gpu(torch.zeros(1, dtype=torch.bfloat16))
    assert not gpu.learns_on_gpu(SimpleNamespace(device=GPU, dtype=torch.float32))  # type: ignore[arg-type]


def test_a_cpu_has_none() -> None:
    assert not trial.try_kernels(CPU)
    assert not serves()


def test_a_small_gpu_has_none(untried: SimpleNamespace) -> None:
    untried.shared_memory_per_multiprocessor = 100 << 10
    assert not trial.try_kernels(GPU)
    assert not serves()


@pytest.mark.parametrize("share", [0.9, float("nan")])
@pytest.mark.parametrize(
    ("module", "name", "is_pair"), [(sets, "attend_backward", False), (feed_forward, "relu_product", True)]
)
def test_wrong_kernels_are_not_used(
    share: float, module: object, name: str, is_pair: bool, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    right = getattr(module, name)

    def wrong(*given: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        found = right(*given)
        off = share if given[0].dtype == torch.bfloat16 else 1.0
        return (found[0], found[1] * off) if is_pair else found * off

    monkeypatch.setattr(module, name, wrong)
    with caplog.at_level(logging.WARNING):
        assert not trial.try_kernels(GPU)
    assert not serves()
    assert "off by" in caplog.text


def test_kernels_that_do_not_compile_leave_torchs_own(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    def no_compiler(device: torch.device) -> float:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(trial, "largest_error", no_compiler)
    with caplog.at_level(logging.WARNING):
        assert not trial.try_kernels(GPU)
        assert not trial.try_kernels(GPU)
    assert caplog.text.count("Failed to find C compiler") == 1
    assert not serves()
