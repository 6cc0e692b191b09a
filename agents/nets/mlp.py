"""The MLP encoder: flattens and concatenates all observation fields, then applies fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import ACTIVATIONS, Block, Encoder, compute_dtype, orthogonal_dense
from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import CategoricalHead, HeadsBlock
from league.agents.nets.input_scaling import FieldScaling, field_scalings
from league.agents.nets.kernels.dense import Dense
from league.agents.nets.popart import ValueScale
from league.envs.protocol import ArraySpec


class FlattenFields(nn.Module):
    """Scales, casts and flattens every field, and concatenates the fields in the order of the spec."""

    def __init__(self, observations: Mapping[str, ArraySpec], config: NetworkConfig) -> None:
        super().__init__()
        self.scalings = field_scalings(observations, config)
        self.num_features = sum(math.prod(spec.shape) for spec in observations.values())

    def forward(self, obs: Mapping[str, Tensor], dtype: torch.dtype) -> Tensor:
        """Features [..., D] of `dtype` from fields [..., *shape] of any dtype."""
        fields = [
            _flatten(scaling(obs[scaling.name]), scaling.rank).to(dtype)
            for scaling in cast(Iterable[FieldScaling], self.scalings)
        ]
        return fields[0] if len(fields) == 1 else torch.cat(fields, dim=-1)


class DenseLayer(nn.Module):
    """Linear -> activation."""

    def __init__(self, num_inputs: int, num_outputs: int, *, activation: str, gain: float, generator: torch.Generator):
        super().__init__()
        fused = activation == "relu"
        self.linear = orthogonal_dense(num_inputs, num_outputs, gain=gain, generator=generator, relu=fused)
        self.activation = None if fused else ACTIVATIONS[activation][0]

    def forward(self, features: Tensor) -> Tensor:
        """[..., D] -> [..., D']."""
        output: Tensor = self.linear(features)
        return output if self.activation is None else self.activation(output)


class InputLayer(nn.Module):
    """The first block: fields -> one tensor -> linear -> activation."""

    def __init__(self, fields: FlattenFields, layer: DenseLayer) -> None:
        super().__init__()
        self.fields = fields
        self.layer = layer

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., D] of observation fields [..., *shape]."""
        features: Tensor = self.layer(self.fields(obs, compute_dtype(self.layer.linear.weight)))
        return features


class IdentityInput(nn.Module):
    """The fields themselves: the first block without hidden layers, or what joins a set of entities."""

    def __init__(self, fields: FlattenFields) -> None:
        super().__init__()
        self.fields = fields

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., D] in the dtype of the fields, at least float32."""
        features: Tensor = self.fields(obs, torch.float32)
        return features


def build_mlp(observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator) -> Encoder:
    """One block per layer of `config.hidden`; the first layer's gain is `config.init_gain`."""
    fields = FlattenFields(observations, config)
    if not config.hidden:
        return Encoder((Block("encoder", IdentityInput(fields), ("obs",)),), fields.num_features)
    width, blocks = fields.num_features, list[Block]()
    for index, next_width in enumerate(config.hidden):
        layer = DenseLayer(
            width,
            next_width,
            activation=config.activation,
            gain=config.init_gain if index == 0 else ACTIVATIONS[config.activation][1],
            generator=generator,
        )
        name = f"encoder_{index}"
        blocks.append(Block(name, InputLayer(fields, layer), ("obs",)) if index == 0 else Block(name, layer))
        width = next_width
    return Encoder(tuple(blocks), width)


def dense_blocks(width: int, config: NetworkConfig, generator: torch.Generator) -> tuple[list[Block], int]:
    """The layers of `config.hidden` after features of `width`, one block each, and the width of their output."""
    blocks, gain = [], ACTIVATIONS[config.activation][1]
    for index, next_width in enumerate(config.hidden):
        layer = DenseLayer(width, next_width, activation=config.activation, gain=gain, generator=generator)
        blocks.append(Block(f"encoder_{index}", layer))
        width = next_width
    return blocks, width


@dataclass(frozen=True)
class PlainLayers:
    """A network of nothing but dense layers with ReLU between them, then a categorical policy and a value.

    Fields:
      fields: of the observation, as they are scaled, in the order of the inputs.
      layers: the dense layers, the heads' last. value: what the value's output goes through.
    """

    fields: tuple[FieldScaling, ...]
    layers: tuple[Dense, ...]
    value: nn.Identity | nn.Tanh | ValueScale

    @property
    def is_scaled(self) -> bool:
        """True if the numbers of a field or the value's output are scaled."""
        scaled = any(field.moments or field.is_squashed for field in self.fields)
        return scaled or isinstance(self.value, ValueScale)

    @property
    def has_tanh(self) -> bool:
        """True if the value's output goes through tanh."""
        return isinstance(self.value, nn.Tanh)

    @property
    def value_moments(self) -> tuple[float, float]:
        """Standard deviation and mean by which the value's output is scaled now."""
        if not isinstance(self.value, ValueScale):
            return 1.0, 0.0
        statistics = self.value.statistics
        return float(statistics.std), float(statistics.mean)


def plain_layers(network: nn.Module, blocks: Sequence[Block]) -> PlainLayers | None:
    """The layers of a network of these blocks; None where it has any other part, or is not in float32 on the CPU."""
    first, *middle, last = [block.module for block in blocks]
    if not isinstance(first, InputLayer) or not isinstance(last, HeadsBlock):
        return None
    dense = [first.layer, *(layer for layer in middle if isinstance(layer, DenseLayer))]
    head, value = last.head, last.value_activation
    scalings = [one for one in first.fields.scalings if isinstance(one, FieldScaling)]
    is_plain = (
        len(dense) == 1 + len(middle)
        and all(layer.activation is None for layer in dense)
        and type(head) is CategoricalHead  # one that is made of it shows other logits
        and not head.uniform_mix
        and isinstance(value, nn.Identity | nn.Tanh | ValueScale)
        and all(one.dtype == torch.float32 and one.device.type == "cpu" for one in network.parameters())
    )
    if not is_plain:
        return None
    assert isinstance(value, nn.Identity | nn.Tanh | ValueScale), "as was asked"
    return PlainLayers(tuple(scalings), (*(layer.linear for layer in dense), last.linear), value)


def _flatten(field: Tensor, rank: int) -> Tensor:
    """[..., *shape] -> [..., D], where `rank` is the length of shape."""
    return field.unsqueeze(-1) if rank == 0 else field.flatten(start_dim=-rank)
