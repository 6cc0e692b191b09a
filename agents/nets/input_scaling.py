"""Brings the numbers of an observation to the size that a network learns from.

A first layer with weights of the usual size hardly sees a number that is small, or that varies little beside its mean:
CartPole in hundredths, or with 100 added to every number, is not learnt at all.

Shape letters: ... leading axes, D numbers in the last axis of a field.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.precision import ExactModule
from league.envs.protocol import ArraySpec


def symlog(numbers: Tensor) -> Tensor:
    """sign(x) log(1 + |x|), elementwise in float32: near 0 the number itself, far out its logarithm.

    Source: Hafner et al. 2023, Mastering diverse domains through world models, eq. 9.
    """
    numbers = numbers.float()
    return numbers.sign() * numbers.abs().log1p()


class FieldScaling(ExactModule):
    """Scales one observation field as a config says: first by its moments, then by its transform.

    Args:
      name, spec: of the field.
      config: with `input_moments` and `input_scaling`.
    Raises:
      ValueError: the config has moments for another number of numbers, or for flags.
    """

    offsets: Tensor | None
    factors: Tensor | None

    def __init__(self, name: str, spec: ArraySpec, config: NetworkConfig) -> None:
        super().__init__()
        self.name = name
        self.rank = len(spec.shape)
        self.is_squashed = config.input_scaling == "symlog" and _holds_large_numbers(spec)
        """True if the numbers go through `symlog`; flags and int8, whose range is small, never do."""
        self.moments = config.input_moments.get(name, ())
        offsets = factors = None
        if self.moments:
            _check_moments(name, spec, len(self.moments))
            offsets, factors = torch.tensor(self.moments).t().contiguous().unbind()
            factors = 1.0 / factors
        self.register_buffer("offsets", offsets, persistent=False)
        self.register_buffer("factors", factors, persistent=False)

    def forward(self, numbers: Tensor) -> Tensor:
        """[..., *shape] of any dtype -> the same shape; the field itself where nothing is to be done."""
        if self.offsets is not None and self.factors is not None:
            numbers = (numbers.float() - self.offsets) * self.factors
        return symlog(numbers) if self.is_squashed else numbers


def field_scalings(observations: Mapping[str, ArraySpec], config: NetworkConfig) -> nn.ModuleList:
    """A `FieldScaling` for every field, in their order."""
    return nn.ModuleList(FieldScaling(name, spec, config) for name, spec in observations.items())


def _holds_large_numbers(spec: ArraySpec) -> bool:
    return spec.dtype == "uint8" or np.dtype(spec.dtype).itemsize > 1


def _check_moments(name: str, spec: ArraySpec, given: int) -> None:
    expected = spec.shape[-1] if spec.shape else 1
    if spec.dtype == "bool":
        raise ValueError(f"input_moments: the field {name!r} holds flags, which have none")
    if given != expected:
        raise ValueError(f"input_moments: {given} pairs for the field {name!r}, whose last axis has {expected} numbers")
