"""The learner benchmark: every workload's rows pass the feeder, and its operations are counted."""

import pytest

from benchmarks.learner import speed
from league.agents.nets.network import build_network


@pytest.mark.parametrize("name", [name for name in speed.WORKLOADS if "4096" not in name])
def test_rows_of_a_workload_pass_the_feeder(name):
    workload = speed.WORKLOADS[name]
    network = build_network(workload.spec, workload.network, seed=1)
    assert all(rate > 0.0 for rate in speed.feeder_rates(workload, network))


def test_operations_of_a_network_are_counted():
    workload = speed.WORKLOADS["MLP 128-128"]
    network = build_network(workload.spec, workload.network, seed=1)
    products = sum(weight.numel() for weight in network.parameters() if weight.dim() == 2)
    counted = speed.flops_per_decision(workload, network)
    # Forward 2 per weight and row, backward twice that but for the first layer's input; one row more to bootstrap.
    assert 4.0 * products < counted < 6.5 * products
