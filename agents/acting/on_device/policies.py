"""The policies of games on a device: one forward pass for the slots of all of them, whatever each one has.

Shape letters: M networks, K slots of a turn, P dist_params, C core state size.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.on_device.tiles import TiledNetworks, can_tile
from league.agents.nets.network import Network, NetworkOutput

SEATS_AT_ONCE = 4
"""Networks of a tiled set grow by so many: a graph is recorded once for each number of them."""


def size_of_set(network: Network, policies: int) -> int:
    """Networks of the set for so many policies: those in between are idle, which costs a tile each."""
    if policies == 1 or not can_tile(network):
        return policies
    return -(-policies // SEATS_AT_ONCE) * SEATS_AT_ONCE


class DevicePolicies:
    """A set of M networks of one architecture, which take over the weights of the policies that are seated.

    The networks stay the same whoever is seated, so that a graph recorded with them stays right.

    Args:
      network: of their architecture, dtype and device. size: M. num_slots: K of every turn.
    """

    def __init__(self, network: Network, *, size: int, num_slots: int, device: torch.device) -> None:
        # `to` lays the weights of an LSTM out as one piece again, which cuDNN wants and a copy loses.
        self._networks = [copy.deepcopy(network).to(device) for _ in range(size)]
        self._seated: list[NetworkPolicy] = []
        self._held: list[tuple[NetworkPolicy, int]] = []
        tiled = size > 1 and can_tile(network)
        self._tiled = TiledNetworks(self._networks, num_rows=num_slots) if tiled else None
        self.head = self._networks[0].head
        self.versions = torch.zeros(size, dtype=torch.int32, device=device)

    def seat(self, policies: Sequence[NetworkPolicy]) -> None:
        """Put at most M policies into the first networks."""
        assert len(policies) <= len(self._networks), "more policies than networks"
        self._seated = list(policies)
        self.refresh()

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over what the policies have adopted since."""
        for index, policy in enumerate(self._seated):
            held = self._held[index] if index < len(self._held) else None
            if held is None or held[0] is not policy or held[1] != policy.version:
                torch._foreach_copy_(list(self._networks[index].parameters()), list(policy.network.parameters()))
        self._held = [(policy, policy.version) for policy in self._seated]
        versions = torch.tensor([policy.version for policy in self._seated], dtype=torch.int32)
        self.versions[: len(versions)] = versions.to(self.versions.device)

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor, action_mask: Tensor | None, holders: Tensor
    ) -> NetworkOutput:
        """As `Network.step`. Args: holders: int64 [K], the network of each slot."""
        if self._tiled is not None:
            return self._tiled.step(obs, core=core, action_mask=action_mask, holders=holders)
        outputs = [network.step(obs, core=core, action_mask=action_mask) for network in self._networks]
        if len(outputs) == 1:
            return outputs[0]
        slots = torch.arange(len(holders), device=holders.device)
        logits, values, cores = (
            torch.stack(parts)[holders, slots]
            for parts in zip(*((output.logits, output.values, output.core) for output in outputs), strict=True)
        )
        return NetworkOutput(logits, values, cores)
