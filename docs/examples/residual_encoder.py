"""An encoder: residual layers on top of one dense layer."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Encoder, orthogonal_dense
from league.agents.nets.config import NetworkConfig
from league.agents.nets.mlp import DenseLayer, FlattenFields, InputLayer
from league.envs.protocol import ArraySpec


class ResidualLayer(nn.Module):
    """Adds a dense layer's output to its input."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dense = orthogonal_dense(width, width, gain=0.1, generator=generator, relu=True)

    def forward(self, features: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        return features + self.dense(features)


@dataclass(frozen=True)
class ResidualConfig:
    """Its options: features of each layer, and the number of residual layers."""

    width: int = 64
    depth: int = 2


def build(
    observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator, *, options: ResidualConfig
) -> Encoder:
    """One block per layer: a pipeline may cut the network between any two blocks."""
    fields, width = FlattenFields(observations, config), options.width
    first = DenseLayer(fields.num_features, width, activation="relu", gain=config.init_gain, generator=generator)
    layers = [Block(f"residual_{i}", ResidualLayer(width, generator)) for i in range(options.depth)]
    return Encoder((Block("input", InputLayer(fields, first), ("obs",)), *layers), width)
