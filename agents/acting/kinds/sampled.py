"""Acting by samples from the distribution of the network's head."""

from __future__ import annotations

import torch

from league.agents.acting.kinds.acting_kinds import ActingPlace
from league.agents.acting.kinds.config import SampleConfig
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.network import Network
from league.envs.protocol import EnvSpec


class Sampled:
    """Each action is a sample from the head's own distribution; nothing further is recorded."""

    recorded: tuple[str, ...] = ()

    def __init__(self, spec: EnvSpec, place: ActingPlace, options: SampleConfig) -> None:
        del spec, place, options

    def policy(self, network: Network, *, dtype: torch.dtype) -> NetworkPolicy:
        return NetworkPolicy(network, dtype=dtype)
