"""Initialisation: the gains that are promised, and the finding that made us choose them."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from torch import Tensor, nn

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, multi_categorical
from tests.oracles.kuhn import information_tensors, nash_conv, row_reaches, value

KUHN = EnvSpec("kuhn", 2, {"cards": ArraySpec((11,), "float32")}, ActionSpec("categorical", 2), (0, 1), False)
WIDE = EnvSpec("wide", 2, {"planes": ArraySpec((6, 7, 2), "bool")}, ActionSpec("categorical", 7), (0, 1), True)
LOGIT_EQUILIBRIUM = 0.038
"""NashConv in chips of Kuhn's exact logit equilibrium at entropy weight 0.1: what training can reach."""


def singular_values(weight: Tensor) -> tuple[float, float]:
    values = torch.linalg.svdvals(weight.detach())
    return values.min().item(), values.max().item()


@pytest.mark.parametrize(("activation", "gain"), [("relu", math.sqrt(2.0)), ("elu", math.sqrt(2.0)), ("tanh", 5 / 3)])
def test_layers_are_orthogonal_with_the_gain_of_their_activation(activation: str, gain: float) -> None:
    config = NetworkConfig(hidden=(96, 32), activation=activation, init_gain=4.0, core="lstm", core_size=16)
    parts = build_network(WIDE, config, seed=0).parts
    expected = {
        parts["encoder_0"].layer.linear.weight: 4.0,
        parts["encoder_1"].linear.weight: gain,
        parts["core"].lstm.weight_ih_l0: 1.0,
        parts["core"].lstm.weight_hh_l0: 1.0,
        parts["heads"].linear.weight[:7]: 0.01,
        parts["heads"].linear.weight[7:]: 1.0,
    }
    for weight, wanted in expected.items():
        assert singular_values(weight) == pytest.approx((wanted, wanted), rel=1e-4)
    assert NetworkConfig().init_gain == pytest.approx(math.sqrt(2.0))


def test_a_separate_value_has_the_same_gains() -> None:
    heads = build_network(WIDE, NetworkConfig(value="separate"), seed=0).parts["heads"]
    assert singular_values(heads.policy.weight) == pytest.approx((0.01, 0.01), rel=1e-4)
    assert singular_values(heads.value.weight) == pytest.approx((1.0, 1.0), rel=1e-4)


def test_transformers_and_heads_of_sub_actions_are_orthogonal_too() -> None:
    spec = EnvSpec(
        "units",
        2,
        {"units": ArraySpec((5, 3), "float32")},
        multi_categorical((3, 5), points_at=("", "units")),
        (0, 1),
        True,
    )
    config = NetworkConfig(
        encoder="dict", hidden=(24,), core="transformer", core_size=16, head="autoregressive", head_size=12
    )
    parts = build_network(spec, config, seed=0).parts
    choices = parts["heads"].head.choices
    expected = {parts["encoder_entities"].embeddings[0].weight: math.sqrt(2.0)}
    for layer in (parts["encoder_entities_0"].layer, parts["core_0"].module.layer):
        key, value = layer.attention.key_value.weight.chunk(2)
        expected |= {layer.attention.query.weight: 1.0, key: 1.0, value: 1.0, layer.attention.output.weight: 1.0}
        expected |= {layer.feed_forward.first.weight: math.sqrt(2.0), layer.feed_forward.second.weight: 1.0}
    expected |= {parts["heads"].linear.weight[:12]: math.sqrt(2.0), parts["heads"].linear.weight[12:]: 1.0}
    expected |= {choices[0].output.weight: 0.01, choices[1].query.weight: 0.01, choices[0].embedding.weight: 1.0}
    for weight, wanted in expected.items():
        assert singular_values(weight) == pytest.approx((wanted, wanted), rel=1e-4)


def test_biases_start_at_zero_and_the_first_policy_is_nearly_uniform() -> None:
    network = build_network(WIDE, NetworkConfig(core="lstm"), seed=0)
    assert all(p.eq(0).all() for name, p in network.named_parameters() if "bias" in name)
    planes = torch.rand(64, 6, 7, 2, generator=torch.Generator().manual_seed(0)) < 0.3
    probabilities = torch.softmax(network.step({"planes": planes}).logits, dim=-1)
    assert (probabilities - 1 / 7).abs().max() < 0.01


def train_on_exact_gradients(network: Network, *, num_steps: int = 600, entropy: float = 0.1) -> float:
    """NashConv after plain gradient steps on exact expected values: neither sampling noise nor a critic to blame."""
    cards = {"cards": information_tensors()}
    sides = torch.tensor([1.0] * 6 + [-1.0] * 6)[:, None]
    optimiser = torch.optim.SGD(network.parameters(), lr=0.5)
    for step in range(num_steps):
        optimiser.param_groups[0]["lr"] = 0.5 * (1.0 - 0.96 * step / num_steps)
        policy = torch.softmax(network.step(cards).logits, dim=-1)
        table = policy.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(value(table), table)
        entropies = -(policy * policy.log()).sum(-1)
        loss = -(sides * gradient * policy).sum() - entropy * (row_reaches(table.detach()) * entropies).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return nash_conv(policy.detach())


@pytest.mark.parametrize("gain", [math.sqrt(2.0), 4.0])
def test_orthogonal_relu_learns_poker_from_raw_0_1_inputs(gain: float) -> None:
    config = NetworkConfig(hidden=(64, 64), init_gain=gain)
    ends = [train_on_exact_gradients(build_network(KUHN, config, seed=seed)) for seed in range(3)]
    assert statistics.median(ends) < LOGIT_EQUILIBRIUM + 0.005


def test_a_tanh_network_with_the_frameworks_initialisation_does_not() -> None:
    network = build_network(KUHN, NetworkConfig(hidden=(64, 64), activation="tanh"), seed=0)
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()
    assert train_on_exact_gradients(network) > 4 * LOGIT_EQUILIBRIUM


def test_the_poker_oracle_gives_the_known_exploitability_of_uniform_play() -> None:
    assert nash_conv(torch.full((12, 2), 0.5, dtype=torch.float64)) == pytest.approx(0.916666667)
