"""The forward pass of a plain MLP in numpy, for a few rows: there the calls of torch cost seven times the products.

Shape letters: G rows, A actions, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from league.agents.nets.heads import CategoricalHead, HeadsBlock
from league.agents.nets.input_scaling import FieldScaling
from league.agents.nets.mlp import DenseLayer, InputLayer
from league.agents.nets.network import Network

MAX_ROWS = 64
"""Rows up to which it is the quicker one: 12 rows of an MLP of 128 x 128 take 0.08 ms instead of 0.6."""


@dataclass(frozen=True)
class PlainNetwork:
    """Dense layers with ReLU between them, then a categorical policy and a value.

    Fields:
      fields: names of the observation's fields, in the order of the inputs.
      layers: float32 weights [I, O] and biases [O], views of the network's own: weights that it adopts count at once.
      has_tanh: whether the value's output goes through tanh.
    """

    fields: tuple[str, ...]
    layers: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
    has_tanh: bool

    @classmethod
    def of(cls, network: Network) -> PlainNetwork | None:
        """The same network; None where it has any other part, or is not in float32 on the CPU."""
        first, *middle, last = [block.module for block in network.blocks]
        if not isinstance(first, InputLayer) or not isinstance(last, HeadsBlock) or network.core_size:
            return None
        dense = [first.layer, *(layer for layer in middle if isinstance(layer, DenseLayer))]
        head, value = last.head, last.value_activation
        scalings = [one for one in first.fields.scalings if isinstance(one, FieldScaling)]
        is_plain = (
            len(dense) == 1 + len(middle)
            and all(layer.activation is None for layer in dense)
            and type(head) is CategoricalHead  # one that is made of it shows other logits
            and not head.uniform_mix
            and not any(scaling.moments or scaling.is_squashed for scaling in scalings)
            and isinstance(value, nn.Identity | nn.Tanh)
            and all(one.dtype == torch.float32 and one.device.type == "cpu" for one in network.parameters())
        )
        if not is_plain:
            return None
        linear = [*(layer.linear for layer in dense), last.linear]
        layers = tuple((one.weight.detach().numpy().T, one.bias.detach().numpy()) for one in linear)
        return cls(tuple(scaling.name for scaling in scalings), layers, isinstance(value, nn.Tanh))

    def judge(self, obs: Mapping[str, NDArray[np.generic]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [G, A], of illegal actions too, and values [G]."""
        parts = [obs[name].reshape(len(obs[name]), -1).astype(np.float32) for name in self.fields]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        for weight, bias in self.layers[:-1]:
            rows = rows @ weight
            rows += bias
            np.maximum(rows, 0.0, out=rows)
        weight, bias = self.layers[-1]
        rows = rows @ weight + bias
        values = rows[:, -1]
        return rows[:, :-1], np.tanh(values) if self.has_tanh else values
