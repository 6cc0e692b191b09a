"""A learner from its settings: network, device, precision, backend. The one place where they are wired together."""

from __future__ import annotations

import importlib
import time

import numpy as np
import torch

from agents.learner.backend import BACKENDS, StepBackend
from agents.learner.config import LearnerConfig
from agents.learner.learner import Learner
from agents.nets.config import NetworkConfig
from agents.nets.network import Network, build_network
from agents.weights import FlatParameters
from envs.protocol import EnvSpec

PROBE_ROWS = 1024
PROBE_REPEATS = 5
MIN_SPEED_UP = 1.1
"""bfloat16 must be this much faster than float32 in the probe to be chosen: below it the rounding buys nothing."""


def build_learner(
    spec: EnvSpec, network_config: NetworkConfig, config: LearnerConfig, *, seed: int, dtype: torch.dtype
) -> Learner:
    """A learner with freshly initialised weights on the GPU where there is one.

    Args:
      spec: the game.
      network_config, config: settings.
      seed: of the initial weights.
      dtype: compute type of the forward pass (see `choose_dtype`).
    Raises:
      ValueError: a setting is impossible; the message lists all.
    """
    problems = config.problems()
    if problems:
        raise ValueError("; ".join(problems))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = build_network(spec, network_config, seed=seed).to(device)
    parameters = FlatParameters(network)
    backend = make_backend(network, config, dtype=dtype, device=device)
    return Learner(parameters, backend, config, device=device)


def make_backend(network: Network, config: LearnerConfig, *, dtype: torch.dtype, device: torch.device) -> StepBackend:
    """The registered backend that the settings name.

    Raises:
      ValueError: no backend has that name.
    """
    if config.backend not in BACKENDS:
        raise ValueError(f"backend: {config.backend!r} is none of {', '.join(BACKENDS)}")
    module, attribute = BACKENDS[config.backend].split(":")
    backend: StepBackend = getattr(importlib.import_module(module), attribute)(
        network, config, dtype=dtype, device=device
    )
    return backend


def choose_dtype(spec: EnvSpec, network_config: NetworkConfig, precision: str) -> torch.dtype:
    """The compute type that a precision setting means on this machine; "auto" times both on a small batch."""
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = build_network(spec, network_config, seed=0).to(device)
    plain, half = (_probe(network, spec, dtype, device) for dtype in (torch.float32, torch.bfloat16))
    return torch.bfloat16 if plain > MIN_SPEED_UP * half else torch.float32


def _probe(network: Network, spec: EnvSpec, dtype: torch.dtype, device: torch.device) -> float:
    """Shortest of a few forward and backward passes, in seconds of this process's CPU time (of wall time on a GPU)."""
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    obs = {
        name: torch.from_numpy(np.zeros((PROBE_ROWS, 1, *array.shape), np.dtype(array.dtype))).to(device)
        for name, array in spec.observations.items()
    }
    shortest = float("inf")
    for _ in range(PROBE_REPEATS):
        start = clock()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            output = network(obs)
        (output.logits.sum() + output.values.sum()).backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        shortest = min(shortest, clock() - start)
    return shortest
