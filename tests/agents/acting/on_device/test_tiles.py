"""Tiled networks answer as each network by itself, however the rows are divided."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from league.agents.acting.on_device.tiles import MIN_TILE, TiledNetworks, Tiling, can_tile
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of

SPEC = spec_of(EnvConfig("connect_four"))
NETWORKS = {
    "mlp": NetworkConfig(hidden=(16, 16), activation="relu"),
    "tanh and popart": NetworkConfig(hidden=(16,), activation="tanh", value_output="popart"),
    "two values": NetworkConfig(hidden=(16,), value="separate"),
    "lstm": NetworkConfig(hidden=(16,), core="lstm", core_size=8, core_layers=2),
    "transformer": NetworkConfig(hidden=(16,), encoder="entities"),
}
DIVISIONS = {
    "even": lambda rng, rows, networks: rng.integers(networks, size=rows),
    "one has nearly all": lambda rng, rows, networks: np.where(
        rng.random(rows) < 0.02, rng.integers(networks, size=rows), 1
    ),
    "one has all": lambda rng, rows, networks: np.full(rows, networks - 1),
    "one row over a tile each": lambda rng, rows, networks: np.repeat(np.arange(networks), MIN_TILE + 1)[:rows],
}


def networks_of(config: NetworkConfig, number: int) -> list[torch.nn.Module]:
    made = [build_network(SPEC, config, seed=seed) for seed in range(number)]
    with torch.no_grad():
        for network in made:
            for parameter in network.parameters():  # layers that begin alike must differ too
                parameter.add_(0.1 * torch.rand_like(parameter))
    return made


@pytest.mark.parametrize("rows", [1, MIN_TILE - 1, 4 * MIN_TILE, 4 * MIN_TILE + 3])
@pytest.mark.parametrize("division", DIVISIONS)
@torch.no_grad()
def test_every_row_has_one_place_in_a_tile_of_its_network(rows: int, division: str) -> None:
    holders = torch.from_numpy(DIVISIONS[division](np.random.default_rng(0), rows, 5)[:rows].astype(np.int64))
    holders = torch.cat([holders, holders.new_zeros(rows - len(holders))])
    tiling = Tiling(num_networks=5, num_rows=rows)
    sources, places = tiling.divide(holders)
    assert len(sources) == tiling.count * tiling.size
    assert len(places.unique()) == rows
    assert torch.equal(sources[places], torch.arange(rows))
    assert torch.equal(tiling.network_of[places // tiling.size], holders)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "transformer"])
@torch.no_grad()
def test_tiled_networks_answer_as_each_by_itself(name: str) -> None:
    networks, rows = networks_of(NETWORKS[name], 3), 300
    assert all(can_tile(network) for network in networks)
    rng = np.random.default_rng(1)
    obs = {"board": torch.from_numpy(rng.random((rows, 2, 6, 7)) < 0.4)}
    mask = torch.from_numpy(rng.random((rows, 7)) < 0.7)
    mask[:, 0] = True
    core = torch.from_numpy(rng.normal(size=(rows, networks[0].core_size)).astype(np.float32))
    for division in DIVISIONS.values():
        holders = torch.from_numpy(np.resize(division(rng, rows, 3), rows).astype(np.int64))
        found = TiledNetworks(networks, num_rows=rows).step(obs, core=core, action_mask=mask, holders=holders)
        for number, network in enumerate(networks):
            own = holders == number
            if not own.any():
                continue
            expected = network.step({"board": obs["board"][own]}, core=core[own], action_mask=mask[own])
            for field in ("logits", "values", "core"):
                torch.testing.assert_close(getattr(found, field)[own], getattr(expected, field), rtol=1e-5, atol=1e-5)


def test_weights_adopted_later_count_at_once() -> None:
    networks = networks_of(NETWORKS["mlp"], 2)
    tiled = TiledNetworks(networks, num_rows=8)
    obs, holders = {"board": torch.zeros(8, 2, 6, 7, dtype=torch.bool)}, torch.tensor([0, 1] * 4)
    with torch.no_grad():
        before = tiled.step(obs, core=torch.zeros(8, 0), action_mask=None, holders=holders).values
        networks[1].blocks[-1].module.linear.bias.add_(1.0)
        after = tiled.step(obs, core=torch.zeros(8, 0), action_mask=None, holders=holders).values
    torch.testing.assert_close(after - before, torch.tensor([0.0, 1.0] * 4))
