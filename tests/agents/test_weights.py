"""One flat vector per version: views that alias, digests, and what does not fit is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from agents.nets.config import NetworkConfig
from agents.nets.network import Network, build_network
from agents.weights import FlatParameters, Weights, WeightsError, adopt, from_named, layout_of, require_finite
from tests.agents.learner_cases import BOARD_GAME


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


def test_published_weights_are_a_copy_that_nobody_can_write() -> None:
    flat = FlatParameters(network_of(8))
    weights = flat.publish(version=3)
    before = weights.digest()
    flat.values.zero_()
    assert weights.digest() == before
    assert weights.version == 3
    with pytest.raises(ValueError, match="read-only"):
        weights.vector[0] = 1.0


def test_equal_weights_have_equal_digests_whatever_their_version() -> None:
    flat = FlatParameters(network_of(8))
    one, two = flat.publish(version=1), flat.publish(version=2)
    assert one.digest() == two.digest()
    flat.values[5] += 1e-6
    assert flat.publish(version=1).digest() != one.digest()
    renamed = Weights(one.vector, type(one.layout)(tuple(reversed(one.layout.names)), one.layout.shapes), 1)
    assert renamed.digest() != one.digest()


def test_named_arrays_are_views_and_lead_back_to_the_same_vector() -> None:
    weights = FlatParameters(network_of(8, 4, seed=2)).publish(version=7)
    named = weights.named()
    assert all(np.shares_memory(array, weights.vector) for array in named.values())
    back = from_named(dict(reversed(named.items())), weights.layout, version=7)
    assert np.array_equal(back.vector, weights.vector)
    assert back.digest() == weights.digest()


def test_loading_and_adopting_reproduce_every_parameter() -> None:
    source, target, acting = network_of(8, seed=1), network_of(8, seed=2), network_of(8, seed=3)
    weights = FlatParameters(source).publish(version=0)
    FlatParameters(target).load(weights)
    adopt(acting, weights)
    for copy in (target, acting):
        for left, right in zip(source.parameters(), copy.parameters(), strict=True):
            assert torch.equal(left, right)


def test_weights_of_another_network_are_refused_by_name_and_shape() -> None:
    weights = FlatParameters(network_of(8)).publish(version=0)
    other = network_of(9)
    with pytest.raises(WeightsError, match="another network"):
        FlatParameters(other).load(weights)
    with pytest.raises(WeightsError, match=r"parameter .*: weights \(.*\), network \(.*\)"):
        adopt(network_of(9), weights)
    with pytest.raises(WeightsError, match="names differ"):
        adopt(network_of(8, 8), weights)
    with pytest.raises(WeightsError, match=r"missing \[.*\], not expected \[.*\]"):
        from_named(weights.named(), layout_of(network_of(8, 8)), version=0)
    with pytest.raises(WeightsError, match=r"has shape \(8,.*the network needs \(9,"):
        from_named(weights.named(), layout_of(network_of(9)), version=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_never_published(bad: float) -> None:
    flat = FlatParameters(network_of(8))
    flat.values[17] = bad
    with pytest.raises(WeightsError, match=f"weight 17 of {flat.layout.size} is {bad}"):
        flat.publish(version=0)
    named = {name: array.copy() for name, array in FlatParameters(network_of(8)).publish(version=0).named().items()}
    next(iter(named.values())).flat[3] = bad
    with pytest.raises(WeightsError, match="weight 3 "):
        from_named(named, flat.layout, version=0)
    require_finite(np.zeros(4, np.float32))


def test_master_weights_must_be_float32() -> None:
    with pytest.raises(WeightsError, match=r"weight is torch\.bfloat16"):
        layout_of(nn.Linear(2, 2, dtype=torch.bfloat16))
