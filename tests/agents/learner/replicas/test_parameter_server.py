"""A replica and the shards of its server over real sockets: Downpour's algorithm, and a shard that is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.loss_stats import COLUMNS
from league.agents.learner.replicas.free_config import ParameterServerConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, GroupMemory
from league.agents.learner.replicas.parameter_server import ParameterServer, gradient_of, socket_of, weights_of
from league.agents.learner.replicas.parameter_shard import ParameterShard
from league.agents.learner.replicas.server_rules import part_bounds
from league.agents.learner.replicas.shard_link import ShardServer
from tests.agents.learner.replicas.test_server_rules import Plain

SIZE, SHARDS, LEARNING_RATE = 7, 2, 0.1
CURVATURE = np.linspace(0.5, 2.0, SIZE)


def sums(steps: float, loss: float = 0.0) -> torch.Tensor:
    return torch.tensor([{"steps": steps, "policy": steps * loss}.get(name, 0.0) for name in COLUMNS]).double()


class Servers:
    """Shards that step by plain gradient descent, a thread each."""

    def __init__(self, folder: Path, options: ParameterServerConfig) -> None:
        self.memory = GroupMemory(folder, SIZE, 2, 5.0)
        self._servers, self._threads = [], []
        slices = zip(part_bounds(SIZE, SHARDS), weights_of(self.memory, SHARDS), strict=True)
        for index, ((start, stop), shared) in enumerate(slices):
            shared.write(np.ones(stop - start, np.float32), version=1)
            gradients = [gradient_of(self.memory, member).values[start:stop] for member in range(2)]
            shard = ParameterShard(Plain(shared), shared, options, gradient_of=gradients.__getitem__)
            self._servers.append(ShardServer(shard, socket_of(self.memory, index), lock=threading.Lock()))
            self._threads.append(threading.Thread(target=self._servers[-1].serve, daemon=True))
            self._threads[-1].start()

    def end(self, index: int) -> None:
        self._servers[index].end()
        self._threads[index].join()


@pytest.fixture
def servers(tmp_path, request) -> Iterator[Servers]:
    made = Servers(tmp_path, getattr(request, "param", ParameterServerConfig(shards=SHARDS)))
    yield made
    for index in range(SHARDS):
        made.end(index)


def learn(mode: ParameterServer, vector: Plain, noise: np.ndarray, *, loss: float = 0.0):  # type: ignore[no-untyped-def]
    """One batch of 10 decisions of a quadratic loss."""
    mode.begin(vector.values)
    gradient = CURVATURE * vector.values.numpy() + noise
    vector.gradients.copy_(torch.from_numpy(gradient))
    return mode.step(vector, sums(10.0, loss), learning_rate=LEARNING_RATE)


def replica(servers: Servers, member: int = 0, **options: object) -> tuple[ParameterServer, Plain]:
    config = ParameterServerConfig(shards=SHARDS, **options)  # type: ignore[arg-type]
    shared = servers.memory.vector(f"own-{member}")
    return ParameterServer(FreeReplicas(servers.memory, member=member), config), Plain(shared)


@pytest.mark.parametrize(("push_every", "fetch_every"), [(1, 1), (2, 2), (3, 2), (1, 3)])
def test_a_replica_follows_downpour_to_the_letter(servers, push_every, fetch_every) -> None:
    mode, vector = replica(servers, push_every=push_every, fetch_every=fetch_every)
    rng = np.random.default_rng(0)
    server, local, accrued = np.ones(SIZE), np.zeros(SIZE), np.zeros(SIZE)
    for step in range(12):
        noise = rng.normal(size=SIZE)
        if step % fetch_every == 0:
            local = server.copy()
        gradient = CURVATURE * local + noise
        accrued, local = accrued + gradient, local - LEARNING_RATE * gradient
        if (step + 1) % push_every == 0:
            server, accrued = server - LEARNING_RATE * accrued, np.zeros(SIZE)
        assert learn(mode, vector, noise).stats.steps == 10.0
        leader = ParameterServer(FreeReplicas(servers.memory, member=-1), ParameterServerConfig(shards=SHARDS))
        np.testing.assert_allclose(leader.publish(torch.zeros(SIZE)).numpy(), server, rtol=1e-4, atol=1e-5)
    assert mode.take_tally().lost_shards == ()
    mode.close()


def test_a_late_gradient_has_the_lag_of_what_came_first_and_an_outlier_is_not_sent(servers) -> None:
    (fast, own), (slow, late) = replica(servers, 0, outlier_deviations=8.0), replica(servers, 1)
    slow.begin(late.values)
    rng = np.random.default_rng(1)
    for _ in range(30):
        learn(fast, own, np.zeros(SIZE), loss=float(rng.normal()))
    assert fast.take_tally().lags == (0,) * 60
    late.gradients.fill_(1.0)
    assert slow.step(late, sums(10.0), learning_rate=LEARNING_RATE).stats.steps == 10.0
    assert slow.take_tally().lags == (30, 30)
    before = [weights.version for weights in weights_of(servers.memory, SHARDS)]
    assert learn(fast, own, np.zeros(SIZE), loss=50.0).stats.steps == 0.0
    assert fast.take_tally().dropped == 1
    assert [weights.version for weights in weights_of(servers.memory, SHARDS)] == before
    fast.close()
    slow.close()


def test_a_lost_shard_leaves_its_slice_and_the_others_learn(servers) -> None:
    mode, vector = replica(servers)
    learn(mode, vector, np.zeros(SIZE))
    mode.begin(vector.values)
    fetched = vector.values.clone()
    servers.end(0)
    vector.gradients.fill_(1.0)
    assert mode.step(vector, sums(10.0), learning_rate=LEARNING_RATE).stats.steps == 10.0
    assert mode.take_tally().lost_shards == (0,)
    mode.begin(vector.values)
    (start, stop), (other, end) = part_bounds(SIZE, SHARDS)
    torch.testing.assert_close(vector.values[start:stop], fetched[start:stop])
    torch.testing.assert_close(vector.values[other:end], fetched[other:end] - LEARNING_RATE)
    assert mode.take_tally().lost_shards == (0,)
    mode.close()
