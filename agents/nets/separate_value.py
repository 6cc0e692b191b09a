"""The separate value network: every block twice, with the policy's and the value's features in one tensor.

Shape letters: ... any leading axes; D features and C floats of core state of the policy's half, D2 and C2 of the
value's; P dist_params. Blocks stay a plain list this way, and a pipeline cuts both halves at the same places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, SideInputs, Trunk, compute_dtype, orthogonal_dense, run_block
from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import VALUE_GAIN, Head, value_activation, with_passthrough
from league.envs.protocol import ArraySpec

WAIT = Block("wait", nn.Identity())
"""Replaces a block where one trunk has fewer blocks than the other."""


class TwinInput(nn.Module):
    """The first blocks of both halves; each reads its own observation fields."""

    def __init__(self, policy: nn.Module, value: nn.Module) -> None:
        super().__init__()
        self.policy = policy
        self.value = value

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., D + D2] of observation fields [..., *shape]."""
        return torch.cat([self.policy(obs=obs), self.value(obs=obs)], dim=-1)


class TwinLayer(nn.Module):
    """Two blocks without side inputs; the policy's takes the first `num_policy` of the features."""

    def __init__(self, policy: nn.Module, value: nn.Module, num_policy: int) -> None:
        super().__init__()
        self.policy = policy
        self.value = value
        self.num_policy = num_policy

    def forward(self, features: Tensor) -> Tensor:
        """[..., D + D2] -> [..., D' + D2']."""
        policy, value = features[..., : self.num_policy], features[..., self.num_policy :]
        return torch.cat([self.policy(policy), self.value(value)], dim=-1)


class TwinCore(nn.Module):
    """Two cores; their packed states are concatenated, as their features are."""

    def __init__(self, policy: nn.Module, value: nn.Module, num_policy: int, policy_core_size: int) -> None:
        super().__init__()
        self.policy = policy
        self.value = value
        self.num_policy = num_policy
        self.policy_core_size = policy_core_size

    def forward(
        self, features: Tensor, *, resets: Tensor | None, core: Tensor, **more: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Features [B, T, D' + D2'] and state [B, C + C2] of features [B, T, D + D2] and state [B, C + C2]."""
        policy, value = features[..., : self.num_policy], features[..., self.num_policy :]
        policy_core, value_core = core[:, : self.policy_core_size], core[:, self.policy_core_size :]
        policy, policy_core = self.policy(policy, resets=resets, core=policy_core.contiguous(), **more)
        value, value_core = self.value(value, resets=resets, core=value_core.contiguous(), **more)
        return torch.cat([policy, value], dim=-1), torch.cat([policy_core, value_core], dim=-1)


class TwinHeads(nn.Module):
    """The last block: the policy reads the first features, the value the rest."""

    def __init__(
        self, head: Head, num_policy: int, num_value: int, config: NetworkConfig, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.head = head
        self.value_activation = value_activation(config)
        self.num_value = num_value
        self.num_policy = num_policy
        self.policy = orthogonal_dense(num_policy, head.num_outputs, gain=head.output_gain, generator=generator)
        self.value = orthogonal_dense(num_value, 1, gain=VALUE_GAIN, generator=generator)

    def forward(self, features: Tensor, *, action_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """dist_params float32 [..., P] and values float32 [...] of features [..., D + carried + D2]."""
        widths = [self.num_policy, self.head.num_passthrough, self.num_value]
        policy, passed_through, value = torch.split(features.to(compute_dtype(self.policy.weight)), widths, dim=-1)
        values = self.value(value).float().squeeze(-1)
        outputs = with_passthrough(self.policy(policy), passed_through if self.head.num_passthrough else None)
        dist_params = self.head.dist_params_of(outputs, action_mask)
        return dist_params, self.value_activation(values)

    def value_row(self) -> tuple[nn.Linear, int]:
        """The layer that outputs the value, and the index of that output."""
        return self.value, 0


def pair_trunks(policy: Trunk, value: Trunk, observations: Mapping[str, ArraySpec]) -> Trunk:
    """Join two trunks, the policy's features first; the encoder with fewer blocks passes its features on unchanged.

    observations: fields that the policy's trunk takes.
    Raises:
      ValueError: the cores differ in form.
    """
    encoders = list(zip_longest(policy.encoder, value.encoder, fillvalue=WAIT))
    pairs = [*encoders, *zip(policy.core, value.core, strict=True)]
    # The longer encoder names the blocks: names of one encoder differ among themselves.
    names = [block.name for block in (*max(policy.encoder, value.encoder, key=len), *policy.core)]
    widths = _widths([ours for ours, _ in pairs], observations, policy.core_size)
    blocks = []
    for name, width, (ours, other) in zip(names, [0, *widths[:-1]], pairs, strict=True):
        twin: nn.Module
        if "obs" in ours.side_inputs:
            twin = TwinInput(ours.module, other.module)
        elif "core" in ours.side_inputs:
            twin = TwinCore(ours.module, other.module, num_policy=width, policy_core_size=policy.core_size)
        else:
            twin = TwinLayer(ours.module, other.module, num_policy=width)
        blocks.append(Block(name, twin, ours.side_inputs, compiles=ours.compiles and other.compiles))
    return Trunk(
        tuple(blocks[: len(encoders)]),
        tuple(blocks[len(encoders) :]),
        widths[-1] + value.num_features,
        policy.core_size + value.core_size,
    )


@torch.no_grad()
def _widths(blocks: Sequence[Block], observations: Mapping[str, ArraySpec], core_size: int) -> list[int]:
    """Width of the features after each block, measured by running one step of zeros."""
    obs = {name: torch.zeros(1, 1, *spec.shape) for name, spec in observations.items()}
    side = SideInputs(obs, None, torch.zeros(1, core_size), None)
    features: Tensor | None = None
    widths = []
    for block in blocks:
        result = run_block(block, features, side)
        features = result[0] if isinstance(result, tuple) else result
        widths.append(features.shape[-1])
    return widths
