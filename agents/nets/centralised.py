"""Fields of a centralised value: splits them from the policy's fields, and fills missing ones with zeros.

In training the value also sees the game's `value_fields`; the policy never does. Outside training the fields may be
missing: the policy acts the same, and the values and their slice of the core state mean nothing.

Shape letters: ... leading axes, D features.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Encoder
from league.envs.protocol import ArraySpec, EnvSpec


class ZerosForMissing(nn.Module):
    """A first block that fills missing observation fields with 0."""

    def __init__(self, module: nn.Module, fields: Mapping[str, ArraySpec]) -> None:
        super().__init__()
        self.module = module
        self.fields = dict(fields)

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., D] of observation fields [..., *shape]."""
        missing = [name for name in self.fields if name not in obs]
        if missing:
            known, field = next((name, field) for name, field in obs.items() if name in self.fields)
            leading = field.shape[: field.ndim - len(self.fields[known].shape)]
            zeros = {name: torch.zeros(*leading, *self.fields[name].shape, device=field.device) for name in missing}
            obs = {**obs, **zeros}
        features: Tensor = self.module(obs=obs)
        return features


def policy_fields(spec: EnvSpec) -> dict[str, ArraySpec]:
    """The observation fields that a policy may read.

    Raises:
      ValueError: a value field is not observed, or there is no other field.
    """
    unknown = [name for name in spec.value_fields if name not in spec.observations]
    if unknown:
        raise ValueError(
            f"{spec.env_id}: value_fields {unknown} are not among the observations {list(spec.observations)}"
        )
    fields = {name: field for name, field in spec.observations.items() if name not in spec.value_fields}
    if not fields:
        raise ValueError(f"{spec.env_id}: every observation field is a value field; the policy has nothing to see")
    return fields


def check_central(spec: EnvSpec) -> None:
    """Refuse a centralised value in a game without value fields.

    Raises:
      ValueError: the game has no value fields.
    """
    if not spec.value_fields:
        raise ValueError(
            f"value: centralised needs a game with value_fields, {spec.env_id} has none; use separate or shared"
        )


def tolerate_missing(encoder: Encoder, spec: EnvSpec) -> Encoder:
    """The same encoder, with zeros for missing fields."""
    first = encoder.blocks[0]
    block = Block(first.name, ZerosForMissing(first.module, spec.observations), first.side_inputs)
    return Encoder((block, *encoder.blocks[1:]), encoder.num_features, encoder.num_passthrough)
