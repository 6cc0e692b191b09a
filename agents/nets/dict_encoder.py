"""The encoder for observations of several fields: a branch for each kind of shape, joined in one trunk.

A field of rank 3 is a picture and goes through convolutions; a field of rank 2 is a set of entities and goes through
the transformer (conventions in `entities`); all others are flattened, side by side, into one fully connected layer.

Shape letters: ... leading axes, F features of all fields but entities.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Encoder
from league.agents.nets.config import NetworkConfig
from league.agents.nets.entities import encode_entities, entity_layout
from league.agents.nets.image_encoders import plain_pictures
from league.agents.nets.mlp import DenseLayer, FlattenFields, IdentityInput, InputLayer, dense_blocks
from league.envs.facts.pictures import PICTURE_RANK
from league.envs.protocol import ArraySpec


class Branches(nn.Module):
    """Modules that each take the observation; their features are concatenated."""

    def __init__(self, branches: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleDict(branches)

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., F] of observation fields [..., *shape]."""
        return torch.cat([branch(obs=obs) for branch in self.branches.values()], dim=-1)


def build_fields(
    observations: Mapping[str, ArraySpec],
    config: NetworkConfig,
    generator: torch.Generator,
    *,
    pointers: tuple[str, ...] = (),
) -> Encoder:
    """Branches for pictures, entities and plain numbers, then the layers of `config.hidden` over their features.

    Pictures go through convolutions of `config.channels`, entities through `config.entity_layers` transformer layers,
    and plain numbers through a layer of width `config.hidden[0]`.

    Raises:
      ValueError: a mask of entities does not fit them, or a pointer names no set of entities.
    """
    layout = entity_layout(observations, config.entity_size)
    others = {name: spec for name, spec in observations.items() if name not in layout.field_names}
    pictures = {name: spec for name, spec in others.items() if len(spec.shape) == PICTURE_RANK}
    numbers = {name: spec for name, spec in others.items() if name not in pictures}
    vectors = FlattenFields(numbers, config)
    branches, width = dict[str, nn.Module](), 0
    if pictures:
        convolutions = plain_pictures(pictures, config, generator)
        branches["pictures"], width = convolutions, convolutions.num_features
    if vectors.num_features:
        branch, num_features = _vector_branch(vectors, config, generator)
        branches["vectors"], width = branch, width + num_features
    if layout.sets:
        rest = Branches(branches) if branches else None
        return encode_entities(layout, rest, width, config, generator, pointers=pointers)
    if pointers:
        raise ValueError(f"actions point at {list(pointers)}, but no observation field has rank 2 (entities, numbers)")
    trunk, num_features = dense_blocks(width, config, generator)
    return Encoder((Block("encoder_fields", Branches(branches), ("obs",)), *trunk), num_features)


def _vector_branch(fields: FlattenFields, config: NetworkConfig, generator: torch.Generator) -> tuple[nn.Module, int]:
    """A layer over flattened fields, and its width; the fields themselves if the network has no hidden layers."""
    if not config.hidden:
        return IdentityInput(fields), fields.num_features
    layer = DenseLayer(
        fields.num_features,
        config.hidden[0],
        activation=config.activation,
        gain=config.init_gain,
        generator=generator,
    )
    return InputLayer(fields, layer), config.hidden[0]
