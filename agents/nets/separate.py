"""A value network of its own: every block twice, policy half and value half side by side in one tensor.

Shape letters: ... any leading axes, D features of one half, C floats of one half's core state, P policy parameters.
Blocks stay a plain list this way, and a pipeline cuts both halves at the same places.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from agents.nets.blocks import Block, Core, Encoder, compute_dtype, orthogonal_dense
from agents.nets.heads import POLICY_GAIN, VALUE_GAIN, Head


class TwinInput(nn.Module):
    """The first blocks of both halves, on the same observation."""

    def __init__(self, policy: nn.Module, value: nn.Module) -> None:
        super().__init__()
        self.policy = policy
        self.value = value

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., 2 * D] of observation fields [..., *shape]."""
        return torch.cat([self.policy(obs=obs), self.value(obs=obs)], dim=-1)


class TwinLayer(nn.Module):
    """Two blocks without side inputs."""

    def __init__(self, policy: nn.Module, value: nn.Module) -> None:
        super().__init__()
        self.policy = policy
        self.value = value

    def forward(self, features: Tensor) -> Tensor:
        """[..., 2 * D] -> [..., 2 * D']."""
        policy, value = features.chunk(2, dim=-1)
        return torch.cat([self.policy(policy), self.value(value)], dim=-1)


class TwinCore(nn.Module):
    """Two cores; their packed states lie side by side."""

    def __init__(self, policy: nn.Module, value: nn.Module) -> None:
        super().__init__()
        self.policy = policy
        self.value = value

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [B, T, 2 * D'] and state [B, 2 * C] of features [B, T, 2 * D] and state [B, 2 * C]."""
        policy, value = features.chunk(2, dim=-1)
        policy_core, value_core = core.chunk(2, dim=-1)
        policy, policy_core = self.policy(policy, resets=resets, core=policy_core.contiguous())
        value, value_core = self.value(value, resets=resets, core=value_core.contiguous())
        return torch.cat([policy, value], dim=-1), torch.cat([policy_core, value_core], dim=-1)


class TwinHeads(nn.Module):
    """The last block: the policy reads the first half of the features, the value the second."""

    def __init__(self, head: Head, num_features: int, *, squash_value: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.head = head
        self.squash_value = squash_value
        self.policy = orthogonal_dense(num_features, head.num_outputs, gain=POLICY_GAIN, generator=generator)
        self.value = orthogonal_dense(num_features, 1, gain=VALUE_GAIN, generator=generator)

    def forward(self, features: Tensor, *, action_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Parameters float32 [..., P] and values float32 [...] of features [..., 2 * D]."""
        policy, value = features.to(compute_dtype(self.policy.weight)).chunk(2, dim=-1)
        values = self.value(value).float().squeeze(-1)
        parameters = self.head.parameters_of(self.policy(policy), action_mask)
        return parameters, torch.tanh(values) if self.squash_value else values


def pair_encoders(policy: Encoder, value: Encoder) -> Encoder:
    """Two encoders of the same form as one; `num_features` stays that of one half."""
    first, *rest = zip(policy.blocks, value.blocks, strict=True)
    blocks = [Block(first[0].name, TwinInput(first[0].module, first[1].module), ("obs",))]
    blocks += [Block(ours.name, TwinLayer(ours.module, other.module)) for ours, other in rest]
    return Encoder(tuple(blocks), policy.num_features)


def pair_cores(policy: Core, value: Core) -> Core:
    """Two cores of the same form as one; `num_features` stays that of one half, `core_size` is that of both."""
    block = Block(policy.block.name, TwinCore(policy.block.module, value.block.module), policy.block.side_inputs)
    return Core(block, policy.num_features, policy.core_size + value.core_size)
