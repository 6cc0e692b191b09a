"""Blocks of a network: named, in order, each declaring the side inputs that it needs beyond the features.

Shape letters: B rows, T steps, D features. Only one floating-point tensor [..., D] passes between two blocks, so that
a pipeline may cut between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.dense import Dense
from league.envs.protocol import ArraySpec

ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "relu": (torch.relu, 2.0**0.5),
    "tanh": (torch.tanh, 5.0 / 3.0),
    "elu": (nn.functional.elu, 2.0**0.5),
}
"""Name -> (function, gain of the orthogonal initialisation of a layer that feeds it)."""

Layer = TypeVar("Layer", bound=nn.Module)

SIDE_INPUTS = ("obs", "resets", "core", "action_mask", "host_resets")


@dataclass(frozen=True)
class Block:
    """A piece of a network that always runs on one device.

    Fields:
      name: unique within its network; the prefix of its parameters' names.
      module: called as `module(features, **side inputs)`; the first block of a network gets no features.
      side_inputs: the names from `SIDE_INPUTS` that the module takes as keywords. A module that takes "core" returns
        (features, core state after the last step), every other one returns features; the last block returns
        (policy parameters, values).
      compiles: False for a block that a compiled network runs as it is.
    """

    name: str
    module: nn.Module
    side_inputs: tuple[str, ...] = ()
    compiles: bool = True

    def __post_init__(self) -> None:
        """Check the declaration.

        Raises:
          ValueError: a side input is not one of `SIDE_INPUTS`.
        """
        unknown = sorted(set(self.side_inputs) - set(SIDE_INPUTS))
        if unknown:
            raise ValueError(f"block {self.name!r} declares unknown side inputs {unknown}, known are {SIDE_INPUTS}")


@dataclass(frozen=True, slots=True)
class SideInputs:
    """Inputs of blocks beyond the features; fields as the arguments of `Network.forward`."""

    obs: Mapping[str, Tensor]
    resets: Tensor | None
    core: Tensor
    action_mask: Tensor | None
    host_resets: Tensor | None = None


def run_block(block: Block, features: Tensor | None, side: SideInputs) -> Tensor | tuple[Tensor, Tensor]:
    """Call one block with the side inputs that it declares; features are None for the first."""
    keywords = {name: getattr(side, name) for name in block.side_inputs}
    result: Tensor | tuple[Tensor, Tensor] = (
        block.module(**keywords) if features is None else block.module(features, **keywords)
    )
    return result


@dataclass(frozen=True)
class Encoder:
    """The result of an encoder's builder: blocks, of which the first takes "obs", and the width of their features.

    `num_passthrough` more floats after the `num_features` bypass the core and reach the head: the keys of entities.
    """

    blocks: tuple[Block, ...]
    num_features: int
    num_passthrough: int = 0


@dataclass(frozen=True)
class Core:
    """The result of a core's builder: blocks, the width of their features and C, the floats of their packed state.

    Each block that takes "core" receives the whole state and returns it with its own slice replaced. Blocks may
    therefore receive the state from before the step or the one that the previous block returned.
    """

    blocks: tuple[Block, ...]
    num_features: int
    core_size: int


@dataclass(frozen=True)
class Trunk:
    """All blocks before the heads.

    Fields:
      encoder, core: blocks in order; no core if there is no memory.
      num_features: width before the heads, without the floats that bypass the core.
      core_size: C.
    """

    encoder: tuple[Block, ...]
    core: tuple[Block, ...]
    num_features: int
    core_size: int


class EncoderBuilder(Protocol):
    """Builds an encoder for the observation fields of a game."""

    def __call__(
        self, observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator
    ) -> Encoder: ...


class PointerEncoderBuilder(Protocol):
    """Builds an encoder that can carry the keys of the named fields' entities to the head, in their order."""

    def __call__(
        self,
        observations: Mapping[str, ArraySpec],
        config: NetworkConfig,
        generator: torch.Generator,
        *,
        pointers: tuple[str, ...] = (),
    ) -> Encoder: ...


class CoreBuilder(Protocol):
    """Builds a core for features of a given width."""

    def __call__(self, num_features: int, config: NetworkConfig, generator: torch.Generator) -> Core: ...


def orthogonal_dense(
    num_inputs: int, num_outputs: int, *, gain: float, generator: torch.Generator, relu: bool = False
) -> Dense:
    """A layer with orthogonal weights and zero bias, drawn from `generator` alone; `relu` appends a ReLU."""
    layer = unset_on_cpu(Dense(num_inputs, num_outputs, relu=relu, device="meta"))
    nn.init.orthogonal_(layer.weight, gain=gain, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def unset_on_cpu(layer: Layer) -> Layer:
    """The layer with parameters of any value on the CPU, made from one on the meta device.

    On the meta device a constructor's own initialisation neither costs nor touches the global random state.
    `Module.to_empty` does the same, but imports sympy: half a second and 35 MiB in every process.
    """
    for name, parameter in list(layer.named_parameters()):
        setattr(layer, name, nn.Parameter(torch.empty(parameter.shape, dtype=parameter.dtype)))
    return layer


def compute_dtype(parameter: Tensor) -> torch.dtype:
    """The compute dtype of a layer with this parameter: autocast's if it is on, else the parameter's own."""
    kind = parameter.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else parameter.dtype
