"""A centralised value: it sees what the policy must not, and acting does without it."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

B, T = 4, 6
GAME = EnvSpec(
    "cards",
    2,
    {
        "hand": ArraySpec((5,), "bool"),
        "opponent_hand": ArraySpec((5,), "bool"),
        "opponent_units": ArraySpec((3, 2), "float32"),
    },
    ActionSpec("categorical", 3),
    (0, 1),
    False,
    value_fields=("opponent_hand", "opponent_units"),
)
SMALL = {"hidden": (16, 12), "core_size": 8, "core_context": 3, "attention_heads": 2, "entity_size": 8}
CONFIGS = {
    "mlp": NetworkConfig(value="centralised", **SMALL),
    "no_hidden": NetworkConfig(value="centralised", **{**SMALL, "hidden": ()}),
    "lstm": NetworkConfig(value="centralised", core="lstm", **SMALL),
    "transformer": NetworkConfig(value="centralised", core="transformer", core_layers=2, **SMALL),
    "dict": NetworkConfig(value="centralised", encoder="dict", core="lstm", **SMALL),
}
"""In "dict" the value's encoder has more blocks than the policy's: only the value sees entities."""


def draw(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "hand": torch.rand(B, T, 5, generator=generator) < 0.5,
        "opponent_hand": torch.rand(B, T, 5, generator=generator) < 0.5,
        "opponent_units": torch.randn(B, T, 3, 2, generator=generator),
    }


def resets() -> Tensor:
    flags = torch.zeros(B, T, dtype=torch.bool)
    flags[1, 3] = True
    return flags


@pytest.mark.parametrize("name", CONFIGS)
def test_only_the_value_depends_on_the_opponents_observations(name: str) -> None:
    network = build_network(GAME, CONFIGS[name], seed=0)
    obs, other = draw(), draw(seed=1)
    before = network(obs, resets=resets())
    for field in GAME.value_fields:
        after = network({**obs, field: other[field]}, resets=resets())
        torch.testing.assert_close(after.logits, before.logits, rtol=0, atol=0)
        assert not torch.allclose(after.values, before.values, atol=1e-6), field
    own = network({**obs, "hand": other["hand"]}, resets=resets())
    assert not torch.allclose(own.logits, before.logits, atol=1e-6)
    assert not torch.allclose(own.values, before.values, atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_no_gradient_of_the_policy_reaches_the_value_nor_the_other_way_round(name: str) -> None:
    network = build_network(GAME, CONFIGS[name], seed=0)
    network(draw()).logits.sum().backward()
    by_policy = {key for key, p in network.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    network.zero_grad()
    network(draw()).values.sum().backward()
    by_value = {key for key, p in network.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert by_policy
    assert by_value
    assert not by_policy & by_value


@pytest.mark.parametrize("name", CONFIGS)
def test_acting_without_the_opponents_observations_is_acting_with_them(name: str) -> None:
    network = build_network(GAME, CONFIGS[name], seed=0)
    obs = draw()
    whole = network(obs, resets=resets())
    core, logits = network.initial_core(B), []
    for t in range(T):
        output = network.step({"hand": obs["hand"][:, t]}, core=core * ~resets()[:, t, None])
        core = output.core
        logits.append(output.logits)
    torch.testing.assert_close(torch.stack(logits, 1), whole.logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_unrolled_equals_step_by_step(name: str) -> None:
    network = build_network(GAME, CONFIGS[name], seed=0)
    obs = draw()
    whole = network(obs, resets=resets())
    core, values = network.initial_core(B), []
    for t in range(T):
        output = network.step({key: field[:, t] for key, field in obs.items()}, core=core * ~resets()[:, t, None])
        core = output.core
        values.append(output.values)
    torch.testing.assert_close(torch.stack(values, 1), whole.values, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(core, whole.core, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("value", ["shared", "separate"])
def test_no_other_value_sees_what_is_for_a_centralised_one(value: str) -> None:
    network = build_network(GAME, NetworkConfig(value=value, **SMALL), seed=0)
    alone = network({"hand": draw()["hand"]})
    torch.testing.assert_close(network(draw()).values, alone.values, rtol=0, atol=0)


def test_games_that_do_not_fit_are_refused() -> None:
    config = CONFIGS["mlp"]
    with pytest.raises(ValueError, match="needs a game with value_fields, cards has none"):
        build_network(dataclasses.replace(GAME, value_fields=()), config, seed=0)
    with pytest.raises(ValueError, match=r"value_fields \['deck'\] are not among the observations"):
        build_network(dataclasses.replace(GAME, value_fields=("deck",)), config, seed=0)
    with pytest.raises(ValueError, match="the policy has nothing to see"):
        build_network(dataclasses.replace(GAME, value_fields=tuple(GAME.observations)), config, seed=0)
