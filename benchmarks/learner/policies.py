"""Networks of the learner's benchmarks: an LSTM and a transformer policy, plain and paced.

A paced block sleeps in proportion to its rows, much longer than it computes. So the time that a pipeline saves shows on
a machine with fewer cores than stages.

Shape letters: B rows, T steps, D features, H heads.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

FORWARD_S_PER_ROW = 0.004
BACKWARD_S_PER_ROW = 0.008

NUM_LAYERS = 2
NUM_HEADS = 4

GAME = EnvSpec(
    env_id="benchmark",
    num_seats=2,
    observations={"planes": ArraySpec((48,), "float32")},
    actions=ActionSpec("categorical", num_actions=9),
    teams=(0, 1),
    has_mask=True,
)
CONTROL = dataclasses.replace(
    GAME, observations={"state": ArraySpec((24,), "float32")}, actions=ActionSpec("box", shape=(3,)), has_mask=False
)
SIZES = NetworkConfig(hidden=(64, 64), core="lstm", core_size=64)


def build_lstm(spec: EnvSpec, config: NetworkConfig, *, seed: int) -> Network:
    """Two dense layers, an LSTM and the heads: four blocks."""
    return build_network(spec, config, seed=seed)


def build_transformer(spec: EnvSpec, config: NetworkConfig, *, seed: int) -> Network:
    """A dense layer, two transformer layers over the unroll and the heads: four blocks."""
    outer = dataclasses.replace(config, hidden=config.hidden[:1], core="none")
    dense, heads = build_network(spec, outer, seed=seed).blocks
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [
            Block(f"layer_{index}", UnrollAttention(config.hidden[0], NUM_HEADS), ("resets",))
            for index in range(NUM_LAYERS)
        ]
    # One float of core state that no block reads: it tells the network that its steps are not independent.
    return Network((dense, *layers, heads), core_size=1)


def build_paced_lstm(spec: EnvSpec, config: NetworkConfig, *, seed: int) -> Network:
    """`build_lstm`, every block paced."""
    return paced(build_lstm(spec, config, seed=seed))


def paced(network: Network) -> Network:
    """The network with every block slowed down."""
    blocks = tuple(dataclasses.replace(block, module=PacedModule(block.module)) for block in network.blocks)
    return Network(blocks, core_size=network.core_size)


class UnrollAttention(nn.Module):
    """A pre-norm transformer layer in which a step sees the earlier steps of its own episode."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )

    def forward(self, features: Tensor, *, resets: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, D]; resets: bool [B, T]."""
        rows, steps, width = features.shape
        episode = resets.cumsum(1)
        visible = (episode[:, :, None] == episode[:, None, :]).tril()[:, None]
        parts = self.queries_keys_values(self.norm(features)).chunk(3, dim=-1)
        shape = (rows, steps, self.num_heads, width // self.num_heads)
        queries, keys, values = (part.reshape(shape).transpose(1, 2) for part in parts)
        seen = nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=visible)
        features = features + self.project(seen.transpose(1, 2).reshape(rows, steps, width))
        output: Tensor = features + self.feed_forward(features)
        return output


class _Sleep(torch.autograd.Function):
    """The identity, with a delay each way."""

    @staticmethod
    def forward(context: Any, features: Tensor) -> Tensor:
        context.rows = features.shape[0]
        time.sleep(FORWARD_S_PER_ROW * context.rows)
        return features.view_as(features)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        time.sleep(BACKWARD_S_PER_ROW * context.rows)
        return gradients[0]


class PacedModule(nn.Module):
    """A block's module that takes its time."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    @property
    def head(self) -> Any:
        """Of the last block's module."""
        return self.module.head

    def forward(self, *features: Tensor, **side_inputs: Any) -> Any:
        """The module's answer, after the pause."""
        answer = self.module(*features, **side_inputs)
        if isinstance(answer, tuple):
            return _Sleep.apply(answer[0]), *answer[1:]  # type: ignore[no-untyped-call]
        return _Sleep.apply(answer)  # type: ignore[no-untyped-call]
