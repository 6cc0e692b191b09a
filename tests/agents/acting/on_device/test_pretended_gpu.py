"""Games, policies and unrolls on a pretended GPU: nothing meets on two devices, and reads of the host are counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.on_device import step_graph
from league.agents.acting.on_device.arena import DeviceArena
from league.agents.device_games.making import make_device_game
from league.agents.learner.build import build_learner
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.unroll import UnrollSpec
from league.envs.protocol import EnvConfig
from tests.agents.acting.on_device.cases import LSTM, MLP, Table
from tests.agents.acting.on_device.test_arena import GAMES
from tests.agents.pretend_gpu import GPU, Marks, pretended_gpu

T = 5
READS_OF_AN_UNROLL = 2
"""The number of complete unrolls, and whether every answer was a number."""
READS_OF_A_LEASE = 1
"""The assignments of the games in flight."""
READS_OF_OUTCOMES = 3
"""Orders of the teams, decisions and returns, once in a lease."""
READS_OF_AN_UPDATE = 2
"""The sums of the loss, and the decisions of each age; with memory the resets too."""


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Marks]:
    monkeypatch.setattr(step_graph, "WARM_UP", 10**9)  # a pretended GPU records no graph
    with pretended_gpu(monkeypatch) as found:
        yield found


@pytest.mark.parametrize("network", [MLP, LSTM], ids=["mlp", "lstm"])
@pytest.mark.parametrize(("game", "kwargs", "tables"), GAMES, ids=[game for game, _, _ in GAMES])
def test_the_host_reads_twice_an_unroll_and_the_rows_are_learnt_where_they_are(
    marks: Marks, game: str, kwargs: dict[str, object], tables: tuple[Table, ...], network: NetworkConfig
) -> None:
    games = make_device_game(EnvConfig(id=game, kwargs=kwargs), num_envs=12, device=GPU, seed=1)
    built = build_network(games.spec, network, seed=0)
    arena = DeviceArena(games, UnrollSpec.of(games.spec, built, unroll_length=T), device=GPU, seed=2)
    policies = {}
    for number, name in enumerate(("home", "old-1", "old-2")):
        policies[name] = NetworkPolicy(build_network(games.spec, network, seed=number))
        policies[name].network.to(GPU)
    config = LearnerConfig(unroll_length=T, batch_rows=4, precision="float32")
    learner = build_learner(games.spec, network, config, seed=0, dtype=torch.float32)
    blocks, of_learning, updates, begun = 4, 0, 0, marks.reads
    playing = arena.run(tables, policies, steps=blocks * T)
    for rows in playing:
        begun_to_learn = marks.reads
        assert all(marks.has(tensor) for tensor in rows.arrays().values() if tensor.numel())
        for start in range(0, rows.num_rows - 3, 4):
            report = learner.update(rows.rows(start, start + 4), budget_fraction=0.0)
            assert report.steps == 4 * T and report.lag_max >= 0
            updates += 1
        of_learning += marks.reads - begun_to_learn
    assert updates > 3
    assert marks.reads - begun - of_learning == READS_OF_A_LEASE + READS_OF_AN_UNROLL * blocks
    assert of_learning == updates * (READS_OF_AN_UPDATE + (network is LSTM))
    before = marks.reads
    arena.take_outcomes()
    assert marks.reads - before == READS_OF_OUTCOMES
