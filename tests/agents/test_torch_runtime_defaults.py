"""Networks say their dtype, and learning switches gradients on itself, whatever the program around has set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.torch_runtime import with_own_defaults
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)


def test_a_network_is_float32_in_a_program_of_float64() -> None:
    network = build_network(spec_of(EnvConfig("tic_tac_toe")), NetworkConfig(hidden=(8,)), seed=0)
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


def test_the_program_has_its_own_defaults_again() -> None:
    @with_own_defaults
    def inside() -> tuple[torch.dtype, bool]:
        return torch.get_default_dtype(), torch.is_grad_enabled()

    assert inside() == (torch.float32, True)
    assert (torch.get_default_dtype(), torch.is_grad_enabled()) == (torch.float64, False)
