"""The entity encoder: a transformer over sets of entities, joined by the other observation fields.

An observation field of rank 2, [E, D], is a set of E entities of D numbers each. A bool field [E] of the same name
with the suffix "_mask" marks the present ones; without it all are present. Absent entities change nothing, whatever
their rows hold. The order of present entities changes only the order of their keys. The transformer treats all sets
as one, each with its own embedding. Another module encodes the other fields.

Shape letters: ... leading axes, E entities of all sets, W width of an entity, F features of other fields, K width of a
key. Features between the blocks are laid out as [E * W | E | F]: entities, 1 for each present one, the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from league.agents.nets.attention import Norm, TransformerLayer
from league.agents.nets.blocks import Block, Encoder, compute_dtype, orthogonal_dense
from league.agents.nets.config import NetworkConfig
from league.agents.nets.input_scaling import field_scalings
from league.agents.nets.kernels.dense import Dense
from league.agents.nets.mlp import FlattenFields, IdentityInput, dense_blocks
from league.agents.nets.passthrough import passthrough
from league.envs.protocol import MASK_ENDING, ArraySpec

SET_RANK = 2


@dataclass(frozen=True)
class EntitySet:
    """One field of entities.

    Fields:
      name: of the field; mask_name: of the field that marks the present ones, None if all are present.
      start: of its entities among those of all sets.
      spec: of the field, [E of this set, D of this set].
    """

    name: str
    mask_name: str | None
    start: int
    spec: ArraySpec

    @property
    def count(self) -> int:
        """E of this set."""
        return self.spec.shape[0]


@dataclass(frozen=True)
class EntityLayout:
    """The sets of a game; splits features between the blocks into their sections."""

    sets: tuple[EntitySet, ...]
    size: int

    @property
    def num_entities(self) -> int:
        """E."""
        return sum(one.count for one in self.sets)

    @property
    def field_names(self) -> frozenset[str]:
        """Observation fields that the sets consume."""
        return frozenset(name for one in self.sets for name in (one.name, one.mask_name) if name is not None)

    def take_apart(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Entities [N, E, W], their presence bool [N, E], and the rest [..., F]; N = all leading axes."""
        wide = self.num_entities * self.size
        entities = features[..., :wide].reshape(-1, self.num_entities, self.size)
        present = features[..., wide : wide + self.num_entities].reshape(-1, self.num_entities) > 0.5
        return entities, present, features[..., wide + self.num_entities :]


class EntityInput(nn.Module):
    """The first block: maps entities to vectors of width W and appends the features of other fields."""

    def __init__(
        self,
        layout: EntityLayout,
        others: nn.Module | None,
        config: NetworkConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.layout = layout
        self.scalings = field_scalings({one.name: one.spec for one in layout.sets}, config)
        self.embeddings = nn.ModuleList(
            orthogonal_dense(one.spec.shape[1], layout.size, gain=config.init_gain, generator=generator)
            for one in layout.sets
        )
        self.others = others

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., E * W + E + F] of observation fields [..., *shape]."""
        dtype = compute_dtype(cast(Dense, self.embeddings[0]).weight)
        entities, flags = [], []
        for one, scaling, embedding in zip(self.layout.sets, self.scalings, self.embeddings, strict=True):
            numbers = scaling(obs[one.name]).to(dtype)
            if one.mask_name is None:
                present = torch.ones(numbers.shape[:-1], dtype=torch.bool, device=numbers.device)
            else:
                present = obs[one.mask_name].bool()
                # Padding may hold NaN, and NaN times 0 is still NaN.
                numbers = torch.where(present.unsqueeze(-1), numbers, 0.0)
            entities.append(embedding(numbers).flatten(-2))
            flags.append(present.to(dtype))
        rest = [] if self.others is None else [self.others(obs=obs)]
        return torch.cat([*entities, *flags, *(features.to(dtype) for features in rest)], dim=-1)


class EntityLayer(nn.Module):
    """One transformer layer over the entities."""

    def __init__(self, layout: EntityLayout, num_heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layout = layout
        self.layer = TransformerLayer(layout.size, num_heads, generator)

    def forward(self, features: Tensor) -> Tensor:
        """[..., E * W + E + F] -> the same."""
        entities, present, _ = self.layout.take_apart(features)
        entities = self.layer.within(entities.to(self.layer.dtype), present)
        unchanged = features[..., self.layout.num_entities * self.layout.size :].to(entities.dtype)
        return torch.cat([entities.reshape(*features.shape[:-1], -1), unchanged], dim=-1)


class PointerKeys(nn.Module):
    """The keys that a head compares its query with."""

    def __init__(self, size: int, key_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.linear = orthogonal_dense(size, key_size, gain=1.0, generator=generator)

    def forward(self, entities: Tensor) -> Tensor:
        """[N, E, W] -> [N, E, K] in the compute dtype."""
        keys: Tensor = self.linear(entities.to(compute_dtype(self.linear.weight)))
        return keys


class EntityPool(nn.Module):
    """Mean of the present entities (zeros if there is none), and keys of those that a head points at."""

    def __init__(
        self, layout: EntityLayout, pointers: Sequence[EntitySet], key_size: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.layout = layout
        self.norm = Norm(layout.size)
        self.pointers = tuple(pointers)
        self.keys = nn.ModuleList(PointerKeys(layout.size, key_size, generator) for _ in pointers)

    def forward(self, features: Tensor) -> Tensor:
        """[..., E * W + E + F] -> [..., W + F], with keys [E' * K] and flags [E'] of each set pointed at."""
        entities, present, rest = self.layout.take_apart(features)
        leading = features.shape[:-1]
        entities = self.norm(entities)
        dtype = entities.dtype
        there = present.unsqueeze(-1).to(dtype)
        mean = (entities * there).sum(1) / there.sum(1).clamp(min=1.0)
        parts = [mean.view(*leading, -1), rest]
        for one, key in zip(self.pointers, self.keys, strict=True):
            chosen = slice(one.start, one.start + one.count)
            keys = key(entities[:, chosen]) * there[:, chosen]
            parts += [keys.reshape(*leading, -1), there[:, chosen].reshape(*leading, -1)]
        return torch.cat([part.to(dtype) for part in parts], dim=-1)


def entity_layout(observations: Mapping[str, ArraySpec], size: int) -> EntityLayout:
    """The sets among the fields of a game.

    Raises:
      ValueError: a mask is not a bool field with one entry for each entity.
    """
    sets, start = [], 0
    for name, spec in observations.items():
        if len(spec.shape) != SET_RANK:
            continue
        mask_name = name + MASK_ENDING if name + MASK_ENDING in observations else None
        if mask_name is not None and observations[mask_name] != ArraySpec(spec.shape[:1], "bool"):
            raise ValueError(
                f"field {mask_name!r} is {observations[mask_name].dtype} {observations[mask_name].shape}; "
                f"the mask of {name!r} {spec.shape} must be bool {spec.shape[:1]}"
            )
        sets.append(EntitySet(name, mask_name, start, spec))
        start += spec.shape[0]
    return EntityLayout(tuple(sets), size)


def build_entities(
    observations: Mapping[str, ArraySpec],
    config: NetworkConfig,
    generator: torch.Generator,
    *,
    pointers: tuple[str, ...] = (),
) -> Encoder:
    """`config.entity_layers` transformer layers over the entities, then the layers of `config.hidden`.

    Other fields are flattened and join the entities' mean after the transformer.

    Raises:
      ValueError: there are no entities, or a mask does not fit.
    """
    layout = entity_layout(observations, config.entity_size)
    if not layout.sets:
        shapes = {name: spec.shape for name, spec in observations.items()}
        raise ValueError(f"no field of rank {SET_RANK} (entities, numbers) among {shapes}; use 'mlp'")
    numbers = {name: spec for name, spec in observations.items() if name not in layout.field_names}
    rest = FlattenFields(numbers, config)
    others = IdentityInput(rest) if rest.num_features else None
    return encode_entities(layout, others, rest.num_features, config, generator, pointers=pointers)


def encode_entities(
    layout: EntityLayout,
    others: nn.Module | None,
    num_others: int,
    config: NetworkConfig,
    generator: torch.Generator,
    *,
    pointers: tuple[str, ...],
) -> Encoder:
    """The blocks of an encoder with entities.

    Args:
      layout: the entities, at least one set.
      others: called as `others(obs=...)`, features [..., F] of the other fields; None for none.
      num_others: F.
      pointers: names of the sets whose keys are carried to the head.
    Raises:
      ValueError: a pointer names no set of entities.
    """
    by_name = {one.name: one for one in layout.sets}
    missing = [name for name in pointers if name not in by_name]
    if missing:
        raise ValueError(f"actions point at {missing}, but the entities are {sorted(by_name)}")
    targets = [by_name[name] for name in pointers]
    first = EntityInput(layout, others, config, generator)
    blocks = [Block("encoder_entities", first, ("obs",))]
    for index in range(config.entity_layers):
        blocks.append(Block(f"encoder_entities_{index}", EntityLayer(layout, config.attention_heads, generator)))
    blocks.append(Block("encoder_pool", EntityPool(layout, targets, config.pointer_size, generator)))
    num_passthrough = sum(one.count for one in targets) * (config.pointer_size + 1)
    trunk, num_features = dense_blocks(layout.size + num_others, config, generator)
    return Encoder((*blocks, *(passthrough(block, num_passthrough) for block in trunk)), num_features, num_passthrough)
