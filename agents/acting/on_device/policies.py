"""The policies of games on a device: one forward pass for the slots of all of them, whatever each one has.

Shape letters: M policies, K slots of a turn, P dist_params, C core state size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from league.agents.acting.on_device.tiles import TiledNetworks, can_tile
from league.agents.acting.policy import NetworkPolicy
from league.agents.nets.network import NetworkOutput


class DevicePolicies:
    """M network policies of one architecture. Args: num_slots: K of every turn."""

    def __init__(self, policies: Sequence[NetworkPolicy], *, num_slots: int, device: torch.device) -> None:
        self._networks = [policy.network for policy in policies]
        self._policies = policies
        self._tiled = None
        if len(policies) > 1 and can_tile(self._networks[0]):
            self._tiled = TiledNetworks(self._networks, num_rows=num_slots)
        self.head = self._networks[0].head
        self.versions = torch.zeros(len(policies), dtype=torch.int32, device=device)
        self.note_versions()

    def note_versions(self) -> None:
        """Take over the versions of the policies' weights: what they adopt between two calls counts at once."""
        self.versions.copy_(torch.tensor([policy.version for policy in self._policies], dtype=torch.int32))

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor, action_mask: Tensor | None, holders: Tensor
    ) -> NetworkOutput:
        """As `Network.step`. Args: holders: int64 [K], the policy of each slot."""
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
