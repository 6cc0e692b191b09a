"""A whole network: an ordered list of blocks, run over unrolls for learning and over single steps for acting.

Shape letters: B rows, T steps, K slots that act now, A actions, P dist_params (A for a categorical policy),
C floats of core state per row (0 without a core).
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from league.agents.nets.blocks import (
    Block,
    CoreBuilder,
    Encoder,
    EncoderBuilder,
    PointerEncoderBuilder,
    SideInputs,
    Trunk,
    compute_dtype,
    run_block,
)
from league.agents.nets.centralised import check_central, policy_fields, tolerate_missing
from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import Head, HeadBuilder, HeadsBlock, ObservingHeadBuilder
from league.agents.nets.kernels.dense import Dense
from league.agents.nets.kernels.dense_chain import dense_chain
from league.agents.nets.mlp import DenseLayer, InputLayer
from league.agents.nets.network_parts import CORES, ENCODERS, HEADS, resolve
from league.agents.nets.passthrough import passthrough
from league.agents.nets.seat_groups import SeatGroupHeads, SeatGroupNetworks, check_group_head, own_spec
from league.agents.nets.separate_value import TwinHeads, pair_trunks
from league.agents.nets.sub_actions import num_sub_actions
from league.agents.torch_runtime import with_own_defaults
from league.envs.protocol import ArraySpec, EnvSpec, SeatGroup, field_label

__all__ = ["Network", "NetworkOutput", "SideInputs", "build_network", "run_block"]


@dataclass(frozen=True, slots=True)
class NetworkOutput:
    """The outputs of a network; ... is [B, T] for an unroll and [K] for a step.

    Fields:
      logits: float32 [..., P], dist_params for `Network.head`: masked logits of a categorical policy, mean and log
        standard deviation of a box policy, inputs of the head's own layers in an autoregressive one.
      values: float32 [...].
      core: float32 [B, C] or [K, C], state after the last step.
    """

    logits: Tensor
    values: Tensor
    core: Tensor


class Network(nn.Module):
    """A policy and a value as an ordered list of named blocks.

    Attributes:
      blocks: in the order in which they run; a pipeline cuts between them.
      core_size: C.
      config: that it was built from; None for one that was put together in another way.
    """

    def __init__(self, blocks: tuple[Block, ...], *, core_size: int, config: NetworkConfig | None = None) -> None:
        super().__init__()
        self.config = config
        names = [block.name for block in blocks]
        if len(set(names)) != len(names):
            raise ValueError(f"block names must differ, got {names}")
        self.blocks = blocks
        self.core_size = core_size
        self._spans = _spans_of(blocks)
        self.parts = nn.ModuleDict({block.name: block.module for block in blocks})

    @property
    def head(self) -> Head:
        """The distribution that the dist_params describe; it belongs to the last block."""
        return cast(Head, self.blocks[-1].module.head)

    @property
    def num_sub_actions(self) -> int:
        """H of actions with sub-actions, else 0."""
        return num_sub_actions(self.head)

    def forward(
        self,
        obs: Mapping[str, Tensor],
        *,
        resets: Tensor | None = None,
        core: Tensor | None = None,
        action_mask: Tensor | None = None,
        host_resets: Tensor | None = None,
    ) -> NetworkOutput:
        """Run over whole unrolls.

        Args:
          obs: name -> [B, T, ...] of any dtype.
          resets: bool [B, T], True where the step is the first of its episode: the core state is zeroed before it.
            None if there is none.
          core: float32 [B, C] before the first step; None for zeros.
          action_mask: bool [B, T, A], True where legal; None if everything is.
          host_resets: `resets` on the CPU, where the rest is on a GPU; None if they are not at hand.
        Returns:
          Logits [B, T, P], values [B, T], core [B, C].
        """
        rows, steps = next(iter(obs.values())).shape[:2]
        if core is None:
            core = self.initial_core(rows)
        if self.core_size:
            return self._run(SideInputs(obs, resets, core, action_mask, host_resets))
        # Without memory the steps are independent: one flat batch saves every layer the handling of two axes.
        flat = {name: field.flatten(0, 1) for name, field in obs.items()}
        mask = None if action_mask is None else action_mask.flatten(0, 1)
        output = self._run(SideInputs(flat, None, core, mask))
        return NetworkOutput(output.logits.view(rows, steps, -1), output.values.view(rows, steps), output.core)

    def step(
        self, obs: Mapping[str, Tensor], *, core: Tensor | None = None, action_mask: Tensor | None = None
    ) -> NetworkOutput:
        """Run one step of each slot; the caller zeroes the core rows of new episodes first.

        Args:
          obs: name -> [K, ...].
          core: float32 [K, C]; None for zeros.
          action_mask: bool [K, A] or None.
        Returns:
          Logits [K, P], values [K], core [K, C].
        """
        if core is None:
            core = self.initial_core(next(iter(obs.values())).shape[0])
        if not self.core_size:
            return self._run(SideInputs(obs, None, core, action_mask))
        unrolled = {name: field.unsqueeze(1) for name, field in obs.items()}
        mask = None if action_mask is None else action_mask.unsqueeze(1)
        output = self._run(SideInputs(unrolled, None, core, mask))
        return NetworkOutput(output.logits.squeeze(1), output.values.squeeze(1), output.core)

    def initial_core(self, batch: int) -> Tensor:
        """Zeros float32 [batch, C] on the device of the parameters: the state before an episode's first step."""
        return torch.zeros(batch, self.core_size, device=next(self.parameters()).device)

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile the blocks, arguments as of `torch.compile`; neighbours that compile become one graph."""
        for span in self._spans:
            span.compile(*args, **options)

    def _run(self, side: SideInputs) -> NetworkOutput:
        result: Features = None
        core = side.core
        for span in self._spans:
            result, core = span.run(result, side.obs, side.resets, core, side.action_mask, side.host_resets)
        logits, values = cast(tuple[Tensor, Tensor], result)
        return NetworkOutput(logits, values, core)


LayerT = TypeVar("LayerT", bound=nn.Module)

Features: TypeAlias = Tensor | tuple[Tensor, Tensor] | None
"""Between two blocks: None before the first, and logits and values behind the last."""


class _Span:
    """Neighbouring blocks that are compiled as one graph, or not at all."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self._blocks = blocks
        self._compiled: Callable[..., tuple[Features, Tensor]] | None = None

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile the blocks if they are of that kind."""
        if self._blocks[0].compiles:
            self._compiled = torch.compile(self._run, *args, **options)

    def run(self, *inputs: Any) -> tuple[Features, Tensor]:
        """As `_run`, compiled where it was."""
        return (self._compiled or self._run)(*inputs)

    def _run(
        self,
        features: Features,
        obs: Mapping[str, Tensor],
        resets: Tensor | None,
        core: Tensor,
        action_mask: Tensor | None,
        host_resets: Tensor | None,
    ) -> tuple[Features, Tensor]:
        """The features behind the last block, and the core state; arguments as the fields of `SideInputs`."""
        side = SideInputs(obs, resets, core, action_mask, host_resets)
        for blocks, layers in dense_runs(self._blocks, Dense):
            if layers:
                features = _run_dense(blocks, layers, cast("Tensor | None", features), side)
                continue
            result = run_block(blocks[0], cast("Tensor | None", features), side)
            if "core" in blocks[0].side_inputs:
                features, core = cast(tuple[Tensor, Tensor], result)
                side = replace(side, core=core)
            else:
                features = result
        return features, side.core


def dense_runs(blocks: Sequence[Block], kind: type[LayerT]) -> list[tuple[list[Block], list[LayerT]]]:
    """The blocks in order, dense layers that follow one another together, with these; every other block by itself.

    kind: of the layers; a group of networks has put its own into the blocks.
    """
    runs: list[tuple[list[Block], list[LayerT]]] = []
    for block in blocks:
        layer = _dense_of(block.module)
        if type(layer) is not kind:
            runs.append(([block], []))
        elif runs and runs[-1][1]:
            runs[-1][0].append(block)
            runs[-1][1].append(layer)
        else:
            runs.append(([block], [layer]))
    return runs


def _dense_of(module: nn.Module) -> nn.Module | None:
    """The one layer of a block that is a dense layer with ReLU, or the heads; else None."""
    module = module.layer if type(module) is InputLayer else module
    if type(module) is HeadsBlock:
        return None if module.head.num_passthrough else module.linear
    return module.linear if type(module) is DenseLayer and module.activation is None else None


def _run_dense(blocks: Sequence[Block], layers: Sequence[Dense], features: Tensor | None, side: SideInputs) -> Features:
    """The features behind several blocks of one dense layer each."""
    first, last = blocks[0].module, blocks[-1].module
    if isinstance(first, InputLayer):
        features = first.fields(side.obs, compute_dtype(layers[0].weight))
    assert features is not None, "the first block of a network reads observations"
    outputs = dense_chain(features.to(compute_dtype(layers[0].weight)), layers)
    return last.of_outputs(outputs, None, side.action_mask) if isinstance(last, HeadsBlock) else outputs


def _spans_of(blocks: tuple[Block, ...]) -> list[_Span]:
    """The blocks in order, cut where one that compiles meets one that does not."""
    return [_Span(tuple(group)) for _, group in itertools.groupby(blocks, key=lambda block: block.compiles)]


@with_own_defaults
def build_network(spec: EnvSpec, config: NetworkConfig, *, seed: int) -> Network:
    """Build the network that a config describes for a game.

    Args:
      spec: observations and actions of the game.
      config: encoder, core, heads.
      seed: of the initial weights; equal seeds give equal weights, and no other random state is used.
    Raises:
      UnknownPartError: the config names an encoder, core or head that does not exist.
      ValueError: one of these does not fit the game or another one.
    """
    _check_moments(spec, config)
    if spec.seat_groups:
        return _build_groups(spec, config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    fields = policy_fields(spec)
    head = _head(spec, config, generator)
    encoders = [_encoder(fields, config, generator, head=head)]
    if config.value == "separate":
        encoders.append(_encoder(fields, config, generator))
    elif config.value == "centralised":
        check_central(spec)
        encoders.append(tolerate_missing(_encoder(spec.observations, config, generator), spec))
    trunks = [_trunk(encoder, config, generator) for encoder in encoders]
    policy = trunks[0]
    heads: nn.Module
    if len(trunks) == 1:
        trunk = policy
        heads = HeadsBlock(head, policy.num_features, config, generator)
    else:
        trunk = pair_trunks(policy, trunks[1], fields)
        widths = (policy.num_features, trunks[1].num_features)
        heads = TwinHeads(head, *widths, config, generator)
    blocks = (*trunk.encoder, *trunk.core, Block("heads", heads, ("action_mask",)))
    return Network(blocks, core_size=trunk.core_size, config=config)


def _check_moments(spec: EnvSpec, config: NetworkConfig) -> None:
    """Refuse moments of fields that there are not."""
    groups = [(group.name, group.observations) for group in spec.seat_groups] or [("", spec.observations)]
    labels = [field_label(name, group=group) for group, fields in groups for name in fields]
    unknown = [name for name in config.input_moments if name not in labels]
    if unknown:
        raise ValueError(f"input_moments: the game shows {labels} and no field {unknown[0]!r}")


def _own_config(group: SeatGroup, config: NetworkConfig) -> NetworkConfig:
    """The configuration of the network of one seat group."""
    labels = {field_label(name, group=group.name): name for name in group.observations}
    moments = {labels[name]: pairs for name, pairs in config.input_moments.items() if name in labels}
    return replace(config, input_moments=moments)


def _build_groups(spec: EnvSpec, config: NetworkConfig, *, seed: int) -> Network:
    """A network for each seat group behind the blocks of one; other arguments and errors as of `build_network`."""
    seeds = np.random.SeedSequence(seed).generate_state(len(spec.seat_groups), np.uint64)
    networks = [
        build_network(own_spec(spec, group), _own_config(group, config), seed=int(own) >> 1)
        for group, own in zip(spec.seat_groups, seeds, strict=True)
    ]
    for network in networks:
        check_group_head(network.head)
    head = _head(spec, config, torch.Generator().manual_seed(seed))
    check_group_head(head)
    inside = SeatGroupNetworks(spec, networks)
    members = [cast(HeadsBlock | TwinHeads, network.blocks[-1].module) for network in networks]
    blocks = (
        Block("seat_groups", inside, ("obs", "resets", "core", "action_mask")),
        Block("heads", SeatGroupHeads(head, members), ("action_mask",)),
    )
    return Network(blocks, core_size=inside.core_size, config=config)


def _head(spec: EnvSpec, config: NetworkConfig, generator: torch.Generator) -> Head:
    """Build the head; one whose own layers read observations gets those of the value."""
    build = resolve(spec.actions.kind if config.head == "auto" else config.head, HEADS, kind="head")
    if "observations" not in inspect.signature(build).parameters:
        return cast(HeadBuilder, build)(spec.actions, config, generator)
    fields = spec.observations if config.value == "centralised" else policy_fields(spec)
    return cast(ObservingHeadBuilder, build)(spec.actions, config, generator, observations=fields)


def _encoder(
    fields: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator, *, head: Head | None = None
) -> Encoder:
    """Build an encoder that carries the entities that the head points at.

    Raises:
      ValueError: the encoder carries no entities, or others than the head expects.
    """
    build = cast(EncoderBuilder, resolve(config.encoder, ENCODERS, kind="encoder"))
    if head is None or not head.pointers:
        return build(fields, config, generator)
    if "pointers" not in inspect.signature(build).parameters:
        raise ValueError(
            f"actions point at {list(head.pointers)}, which encoder {config.encoder!r} cannot carry; use 'dict'"
        )
    encoder = cast(PointerEncoderBuilder, build)(fields, config, generator, pointers=head.pointers)
    if encoder.num_passthrough != head.num_passthrough:
        shapes = {name: fields[name].shape for name in head.pointers}
        raise ValueError(
            f"the encoder carries {encoder.num_passthrough} floats of {shapes}, the head expects "
            f"{head.num_passthrough}: nvec must hold the number of entities for each sub-action that points at them"
        )
    return encoder


def _trunk(encoder: Encoder, config: NetworkConfig, generator: torch.Generator) -> Trunk:
    if config.core == "none":
        return Trunk(encoder.blocks, (), encoder.num_features, 0)
    build = cast(CoreBuilder, resolve(config.core, CORES, kind="core"))
    core = build(encoder.num_features, config, generator)
    blocks = tuple(passthrough(block, encoder.num_passthrough) for block in core.blocks)
    return Trunk(encoder.blocks, blocks, core.num_features, core.core_size)
