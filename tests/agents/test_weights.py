"""One flat vector per version: views that alias, digests, and what does not fit is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.weights import FlatParameters, Weights, WeightsError, adopt, from_named, layout_of, require_finite
from tests.agents.learner.learner_cases import BOARD_GAME, weights_in


def network_of(*hidden: int, seed: int = 0) -> Network:
    return build_network(BOARD_GAME, NetworkConfig(hidden=hidden), seed=seed)


def test_flat_values_and_gradients_are_the_networks_own() -> None:
    network = network_of(8, 8)
    flat = FlatParameters(network)
    flat.values.fill_(0.25)
    flat.gradients.fill_(2.0)
    for parameter in network.parameters():
        assert (parameter == 0.25).all()
        assert parameter.grad is not None
        assert (parameter.grad == 2.0).all()
    with torch.no_grad():
        next(iter(network.parameters())).fill_(-1.0)
    first = next(iter(network.parameters())).numel()
    assert (flat.values[:first] == -1.0).all()
    assert (flat.values[first:] == 0.25).all()


def test_backward_adds_into_the_flat_gradient() -> None:
    network = network_of(4)
    flat = FlatParameters(network)
    sum(parameter.sum() for parameter in network.parameters()).backward()
    assert (flat.gradients == 1.0).all()
    assert flat.gradients.numel() == flat.layout.size == sum(parameter.numel() for parameter in network.parameters())


def test_taking_parameters_over_changes_no_value() -> None:
    network, same = network_of(8), network_of(8)
    FlatParameters(network)
    for (name, left), (_, right) in zip(network.named_parameters(), same.named_parameters(), strict=True):
        assert torch.equal(left, right), name


def test_replaced_parameters_have_the_same_values_and_gradients_of_their_own() -> None:
    network = network_of(8)
    flat = FlatParameters(network)
    before, old = flat.values.clone(), list(network.parameters())
    late = torch.stack([parameter.square().sum() for parameter in old]).sum()
    flat.replace()
    late.backward()
    assert (flat.gradients == 0.0).all() and torch.equal(flat.values, before)
    names = [name for name, _ in network.named_parameters()]
    assert tuple(names) == flat.layout.names
    torch.stack([parameter.sum() for parameter in network.parameters()]).sum().backward()
    assert (flat.gradients == 1.0).all()
    flat.values.zero_()
    assert all((parameter == 0.0).all() for parameter in network.parameters())


def test_a_parameter_that_two_layers_share_stays_shared_when_it_is_replaced() -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    network[1].weight = network[0].weight
    flat = FlatParameters(network)
    flat.replace()
    assert network[1].weight is network[0].weight
    assert flat.layout.size == sum(parameter.numel() for parameter in network.parameters()) == 15


def test_equal_weights_have_equal_digests_whatever_their_version() -> None:
    network = network_of(8)
    one, two = weights_in(network, version=1), weights_in(network, version=2)
    assert one.digest() == two.digest()
    with torch.no_grad():
        next(network.parameters()).view(-1)[5] += 1e-6
    assert weights_in(network, version=1).digest() != one.digest()
    renamed = Weights(one.vector, type(one.layout)(tuple(reversed(one.layout.names)), one.layout.shapes), 1)
    assert renamed.digest() != one.digest()


def test_named_arrays_are_views_and_lead_back_to_the_same_vector() -> None:
    weights = weights_in(network_of(8, 4, seed=2), version=7)
    named = weights.named()
    assert all(np.shares_memory(array, weights.vector) for array in named.values())
    back = from_named(dict(reversed(named.items())), weights.layout, version=7)
    assert np.array_equal(back.vector, weights.vector)
    assert back.digest() == weights.digest()


def test_adopting_reproduces_every_parameter() -> None:
    source, acting = network_of(8, seed=1), network_of(8, seed=3)
    adopt(acting, weights_in(source))
    for left, right in zip(source.parameters(), acting.parameters(), strict=True):
        assert torch.equal(left, right)


def test_weights_of_another_network_are_refused_by_name_and_shape() -> None:
    weights = weights_in(network_of(8))
    with pytest.raises(WeightsError, match=r"parameter .*: weights \(.*\), network \(.*\)"):
        adopt(network_of(9), weights)
    with pytest.raises(WeightsError, match="names differ"):
        adopt(network_of(8, 8), weights)
    with pytest.raises(WeightsError, match=r"missing \[.*\], not expected \[.*\]"):
        from_named(weights.named(), layout_of(network_of(8, 8)), version=0)
    with pytest.raises(WeightsError, match=r"has shape \(8,.*the network needs \(9,"):
        from_named(weights.named(), layout_of(network_of(9)), version=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(bad: float) -> None:
    vector = np.zeros(40, np.float32)
    require_finite(vector)
    vector[17] = bad
    with pytest.raises(WeightsError, match=f"weight 17 of 40 is {bad}"):
        require_finite(vector)
    network = network_of(8)
    named = {name: array.copy() for name, array in weights_in(network).named().items()}
    next(iter(named.values())).flat[3] = bad
    with pytest.raises(WeightsError, match="weight 3 "):
        from_named(named, layout_of(network), version=0)


def test_master_weights_must_be_float32() -> None:
    with pytest.raises(WeightsError, match=r"weight is torch\.bfloat16"):
        layout_of(nn.Linear(2, 2, dtype=torch.bfloat16))
