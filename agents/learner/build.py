"""A learner from its settings: network, device, precision, backend. The one place where they are wired together."""

from __future__ import annotations

import time

import numpy as np
import torch

from agents.learner.backend import Placement, make_backend
from agents.learner.config import LearnerConfig
from agents.learner.learner import Learner
from agents.learner.objective import make_objective
from agents.learner.tail import Tail
from agents.learner.update_mode import make_update_mode
from agents.learner.updater import LocalUpdater, Updater
from agents.nets.config import NetworkConfig
from agents.nets.network import Network, build_network
from agents.weights import layout_of
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
    network = build_network(spec, network_config, seed=seed)
    layout = layout_of(network)
    updater: Updater = local_updater(network, config, Placement(dtype=dtype, device=default_device()))
    return Learner(updater, layout, config)


def local_updater(network: Network, config: LearnerConfig, placement: Placement) -> LocalUpdater:
    """An updater in this process; the network moves to the placement's device and belongs to it from here on."""
    network = network.to(placement.device)
    objective = make_objective(config, network.head)
    tail = Tail(network, config, keep_slow=objective.passes.slow)
    return LocalUpdater(
        backend=make_backend(network, objective, config, placement),
        objective=objective,
        tail=tail,
        mode=make_update_mode(config.update_mode, None),
        placement=placement,
        config=config,
    )


def default_device() -> torch.device:
    """The GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def choose_dtype(spec: EnvSpec, network_config: NetworkConfig, precision: str) -> torch.dtype:
    """The compute type that a precision setting means on this machine; "auto" times both on a small batch."""
    if precision != "auto":
        return torch.bfloat16 if precision in ("bfloat16", "bf16") else torch.float32
    device = default_device()
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
