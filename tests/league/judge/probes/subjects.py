"""Subjects for probes: policies of a tiny network with random weights."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import Weights, layout_of
from league.core.state.records import ProbeTask
from league.core.state.scoring import BY_WINS
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.probes.probe import Subject
from league.policies.loaded_policy import LoadedPolicy

OLD = ("main-0-s1", "main-0-s2")


def subject_of(env_id: str, **changes: Any) -> Subject:
    env = EnvConfig(env_id)
    spec = spec_of(env)

    def load(name: str) -> LoadedPolicy:
        network = build_network(spec, NetworkConfig(hidden=(8,)), seed=int(name.rpartition("s")[2]))
        layout = layout_of(network)
        vector = np.concatenate([parameter.detach().numpy().ravel() for parameter in network.parameters()])
        return LoadedPolicy(name, network, Weights(vector.astype(np.float32), layout, 0), spec)

    settings: dict[str, Any] = {
        "run": Path(),
        "env": env,
        "spec": spec,
        "task": ProbeTask(1, "probe", "main-0-s3", OLD),
        "load": load,
        "bots": ("random",),
        "scoring": BY_WINS,
        "limit_s": 5.0,
        "ends_at": time.monotonic() + 300.0,
        "seed": 1,
        "greedy": False,
        "place": "probes.kinds.0",
        "remark": lambda sentence: None,
    }
    return Subject(**{**settings, **changes})
