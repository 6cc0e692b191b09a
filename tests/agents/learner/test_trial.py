"""Trials of a user's network and loss: what would end a run in its first seconds is a sentence before it starts."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from league.agents.learner.algorithms.algorithms import OBJECTIVES
from league.agents.learner.trial import try_network, try_objective
from league.agents.nets.blocks import Block
from league.agents.nets.network import Network, build_network
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    COMMANDS,
    CONTROL,
    ENTITIES,
    LSTM,
    MLP,
    TRANSFORMER,
    TWIN_LSTM,
    small_config,
)


class Float32Only(nn.Module):
    """A layer with a constant of one type, as a user may write it."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[..., D] -> [..., D]."""
        return features @ torch.eye(features.shape[-1])


def with_block(module: nn.Module) -> Network:
    """A network with one more block before its heads."""
    *blocks, heads = build_network(BOARD_GAME, MLP, seed=0).blocks
    return Network((*blocks, Block("own", module), heads), core_size=0)


@pytest.mark.parametrize("precision", ["auto", "float32", "bfloat16"])
@pytest.mark.parametrize(
    ("spec", "config"),
    [
        (BOARD_GAME, MLP),
        (BOARD_GAME, LSTM),
        (CONTROL, TWIN_LSTM),
        (COMMANDS, ENTITIES),
        (BOARD_GAME, TRANSFORMER),
    ],
)
def test_every_built_in_network_passes(spec, config, precision) -> None:  # type: ignore[no-untyped-def]
    network = build_network(spec, config, seed=0)
    learner = dataclasses.replace(small_config(), precision=precision)
    try_network(network, spec, learner)
    try_objective(network, spec, learner)


OF_VALUES = {
    "dqn": (BOARD_GAME, "q_values"),
    "ddpg": (CONTROL, "deterministic"),
    "td3": (CONTROL, "deterministic"),
}
"""Algorithm that learns values of actions -> a game and a head that fit it."""


@pytest.mark.parametrize("algorithm", list(OBJECTIVES))
def test_every_built_in_loss_passes_and_the_network_stays_as_it_was(algorithm: str) -> None:
    spec, head = OF_VALUES.get(algorithm, (BOARD_GAME, "auto"))
    network = build_network(spec, dataclasses.replace(MLP, head=head), seed=0)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    try_objective(network, spec, dataclasses.replace(small_config(algorithm=algorithm), precision="auto"))
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))


def test_a_part_that_computes_in_one_type_alone_is_named_with_the_way_out() -> None:
    network = with_block(Float32Only())
    try_network(network, BOARD_GAME, dataclasses.replace(small_config(), precision="float32"))
    with pytest.raises(ValueError, match=r"a trial in bfloat16 raised RuntimeError: .*learner.precision: float32"):
        try_network(network, BOARD_GAME, dataclasses.replace(small_config(), precision="bf16"))


class NotFinite(nn.Module):
    """A layer whose gradient is not a number."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[..., D] -> [..., D]."""
        return features + torch.sqrt(torch.zeros_like(features) * features)


def test_a_gradient_that_is_not_finite_is_named() -> None:
    with pytest.raises(ValueError, match="the gradient of a random batch is not finite"):
        try_objective(with_block(NotFinite()), BOARD_GAME, dataclasses.replace(small_config(), precision="float32"))
