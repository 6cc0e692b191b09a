"""The learner benchmark: every workload's rows pass the feeder, and its operations are counted."""

import learner
import pytest

from agents.nets.network import build_network


@pytest.mark.parametrize("name", [name for name in learner.WORKLOADS if "4096" not in name])
def test_rows_of_a_workload_pass_the_feeder(name):
    fair_share = learner.WORKLOADS[name]
    network = build_network(fair_share.spec, fair_share.network, seed=1)
    assert learner.feeder_rate(fair_share, network) > 0.0


def test_operations_of_a_network_are_counted():
    fair_share = learner.WORKLOADS["MLP 128-128"]
    network = build_network(fair_share.spec, fair_share.network, seed=1)
    products = sum(weight.numel() for weight in network.parameters() if weight.dim() == 2)
    counted = learner.flops_per_decision(fair_share, network)
    # Forward 2 per weight and row, backward twice that but for the first layer's input; one row more to bootstrap.
    assert 4.0 * products < counted < 6.5 * products
