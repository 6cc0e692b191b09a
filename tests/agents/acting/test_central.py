"""Central inference: an inference host decides as a policy in the same process does, for many clients at once."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.central.central_policy import (
    CentralPolicy,
    DirectInferenceClient,
    InferenceClient,
    InferenceLost,
)
from league.agents.acting.central.inference_host import InferenceHost
from league.agents.acting.central.inference_server import InferenceServer
from league.agents.acting.central.messages import local_address
from league.agents.acting.central.shared_rows import RowSizes
from league.agents.acting.central.socket_client import SocketClient
from league.agents.acting.network_group import NetworkGroup
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, NetworkOutput, build_network
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.agents.weights import Weights
from league.envs.protocol import EnvConfig
from league.envs.registry import make, spec_of
from tests.agents.acting.probe_cases import Assignment
from tests.agents.learner.learner_cases import weights_in

MLP = NetworkConfig(hidden=(16,))
LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8)

CASES = {
    "turns": (EnvConfig("connect_four"), MLP),
    "turns_core": (EnvConfig("probe_turns", {"episode_length": [5, 3, 8], "truncate": True}), LSTM),
    "mask_core": (EnvConfig("probe_mask", {"episode_length": [5, 3, 8], "truncate": True}), LSTM),
    "simultaneous_core": (EnvConfig("probe_simultaneous", {"episode_length": [5, 3, 8]}), LSTM),
    "box": (EnvConfig("gymnasium:Pendulum-v1"), LSTM),
}
NUM_ENVS = 6
TABLE = (
    Assignment(("main", "old"), (True, False), 0.5),
    Assignment(("old", "main"), (False, True), 0.25),
    Assignment(("main", "main"), (True, True), 0.25),
)


@dataclasses.dataclass
class Served:
    """A server in a thread of this process, and the clients that were made for it."""

    server: InferenceServer
    host: InferenceHost
    connect: Callable[[], SocketClient]
    thread: threading.Thread

    def end(self) -> None:
        self.server.end()
        self.thread.join(timeout=60.0)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def served(env: EnvConfig, config: NetworkConfig, *, name: str = "", max_wait_s: float = 0.002) -> Iterator[Served]:
    spec, network = spec_of(env), build_network(spec_of(env), config, seed=0)
    name = name or secrets.token_hex(8)
    host = InferenceHost(network)
    server = InferenceServer(host, spec, network, name=name, max_wait_s=max_wait_s)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    clients: list[SocketClient] = []

    def connect() -> SocketClient:
        clients.append(SocketClient(name, spec, network, capacity=NUM_ENVS * spec.num_seats, deadline_s=5.0))
        return clients[-1]

    found = Served(server, host, connect, thread)
    try:
        yield found
    finally:
        for client in clients:
            client.close()
        found.end()


def network_of(env: EnvConfig, config: NetworkConfig, *, seed: int) -> Network:
    """A network far from uniform."""
    network = build_network(spec_of(env), config, seed=seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "heads" in name and name.endswith("weight"):
                parameter.mul_(30.0)
    return network


def table_of(env: EnvConfig) -> tuple[Assignment, ...]:
    return TABLE if spec_of(env).num_seats == 2 else (Assignment(("main",), (True,)),)


def weights_of(env: EnvConfig, config: NetworkConfig) -> dict[str, Weights]:
    names = {"main": 1, "old": 2}
    return {
        name: dataclasses.replace(weights_in(network_of(env, config, seed=seed)), version=seed)
        for name, seed in names.items()
    }


def played(
    env: EnvConfig, config: NetworkConfig, client: InferenceClient | None, *, seed: int = 4, renewed: int = 7
) -> Unrolls:
    """Unrolls of two leases; the main policy has new weights of this version in the second."""
    game, network = make(env, num_envs=NUM_ENVS), build_network(spec_of(env), config, seed=0)
    arena = Arena(game, UnrollSpec.of(game.spec, network, unroll_length=4), seed=seed)
    weights = weights_of(env, config)
    policies: dict[str, Any] = {
        name: NetworkPolicy(network) if client is None else CentralPolicy(name, client) for name in weights
    }
    for name, policy in policies.items():
        policy.adopt(weights[name])
    found = list(arena.run(table_of(env), policies, steps=14))
    if renewed:
        policies["main"].adopt(dataclasses.replace(weights["old"], version=renewed))
    found += arena.run(table_of(env), policies, steps=14)
    arena.close()
    return concatenate(found)


def assert_equal(one: Unrolls, two: Unrolls) -> None:
    assert one.num_rows == two.num_rows
    assert {1, 7} <= set(np.unique(one.versions).tolist())
    for name, array in one.arrays().items():
        if array.dtype == np.float32:  # local policies of one architecture act together, which rounds differently
            np.testing.assert_allclose(array, two.arrays()[name], rtol=1e-5, atol=1e-5, err_msg=name)
        else:
            assert np.array_equal(array, two.arrays()[name]), name
    for name, observed in one.obs.items():
        assert np.array_equal(observed, two.obs[name]), name


@pytest.mark.parametrize("case", CASES)
def test_an_inference_host_gives_the_unrolls_of_local_acting(case: str) -> None:
    """Byte for byte, in the same process and behind shared memory."""
    env, config = CASES[case]
    network, spec = build_network(spec_of(env), config, seed=0), spec_of(env)
    local = played(env, config, None)
    direct = DirectInferenceClient(InferenceHost(network), spec, network, capacity=NUM_ENVS * spec.num_seats)
    assert_equal(local, played(env, config, direct))
    with served(env, config) as found:
        assert_equal(local, played(env, config, found.connect()))


def test_two_clients_at_once_have_their_own_games_and_core_states() -> None:
    env, config = CASES["turns_core"]
    with served(env, config) as found:
        results: dict[int, Unrolls] = {}
        threads = [
            threading.Thread(
                target=lambda s=seed: results.update({s: played(env, config, found.connect(), seed=s, renewed=0)})
            )
            for seed in (4, 5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20.0)
        alone = {seed: played(env, config, None, seed=seed, renewed=0) for seed in (4, 5)}
    assert found.server.counts.requests > found.server.counts.batches  # some were decided together
    for seed in (4, 5):
        assert np.array_equal(results[seed].actions, alone[seed].actions)
        assert np.allclose(results[seed].core, alone[seed].core, atol=1e-5)
        assert np.allclose(results[seed].log_probs, alone[seed].log_probs, atol=1e-5)


def test_a_lost_host_is_an_error_and_the_next_one_is_used() -> None:
    env, config = CASES["turns"]
    name = secrets.token_hex(8)
    with served(env, config, name=name) as found:
        client = found.connect()
        first = played(env, config, client)
        found.end()
        with pytest.raises(InferenceLost, match="has ended"):
            played(env, config, client)
    with served(env, config, name=name):
        assert_equal(first, played(env, config, client))
        client.close()


@pytest.mark.parametrize("case", ["turns", "turns_core"])
def test_policies_of_a_turn_are_asked_for_at_once_and_decided_in_one_pass(case: str, monkeypatch) -> None:
    env, config = CASES[case]
    sizes = []
    plain = NetworkGroup.step

    def counted(self: NetworkGroup, *given: Any, **named: Any) -> NetworkOutput:
        sizes.append(named["sizes"])
        return plain(self, *given, **named)

    network, spec = build_network(spec_of(env), config, seed=0), spec_of(env)
    client = DirectInferenceClient(InferenceHost(network), spec, network, capacity=NUM_ENVS * spec.num_seats)
    requests = []
    monkeypatch.setattr(client, "ask", lambda asked, **named: requests.append(asked) or plain_ask(asked, **named))
    plain_ask = DirectInferenceClient.ask.__get__(client)
    monkeypatch.setattr(NetworkGroup, "step", counted)
    found = played(env, config, client)
    assert len(requests) == 28  # one a turn
    together = [asked for asked in requests if len(asked) > 1]
    assert together and [sorted(size for size in given if size) for given in sizes] == [
        sorted(part.count for part in asked) for asked in together
    ]
    monkeypatch.setattr("league.agents.acting.central.inference_host.can_group", lambda _network: False)
    alone = DirectInferenceClient(InferenceHost(network), spec, network, capacity=NUM_ENVS * spec.num_seats)
    assert_equal(found, played(env, config, alone))


def test_a_client_that_leaves_frees_its_core_states() -> None:
    env, config = CASES["turns_core"]
    with served(env, config) as found:
        client = found.connect()
        played(env, config, client)
        assert len(found.host._cores) == 1
        client.close()
        until = time.monotonic() + 5.0
        while found.host._cores and time.monotonic() < until:
            time.sleep(0.01)
        assert not found.host._cores


def test_newer_weights_stay_unless_a_learner_went_back() -> None:
    env, config = CASES["turns"]
    weights = weights_of(env, config)["main"]
    with served(env, config) as found:
        one, two = (CentralPolicy("main", found.connect()) for _ in range(2))
        for policy, version, kept in ((one, 9, 9), (two, 8, 9), (two, 10, 10), (one, 4, 4)):
            policy.adopt(dataclasses.replace(weights, version=version))
            assert found.host.version_of("main") == kept


@pytest.mark.parametrize("is_remote", [True, False])
def test_other_weights_of_the_same_version_take_the_place_of_those_held(is_remote: bool) -> None:
    """As after a transplant from a donor that has made as many updates."""
    env, config = CASES["turns"]
    before, after = (dataclasses.replace(found, version=7) for found in weights_of(env, config).values())
    with served(env, config) as found:
        direct = DirectInferenceClient(found.host, spec_of(env), network_of(env, config, seed=0), capacity=NUM_ENVS)
        policy = CentralPolicy("main", found.connect() if is_remote else direct)
        for weights in (before, before, after, after):
            policy.adopt(weights)
            np.testing.assert_array_equal(weights_in(found.host._held["main"].network).vector, weights.vector)


def test_a_policy_that_was_given_up_is_handed_over_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.agents.acting.central.inference_host.MAX_POLICIES", 1)
    monkeypatch.setattr(CentralPolicy, "max_joined", 1)
    env, config = CASES["turns"]
    with served(env, config) as found:
        assert_equal(played(env, config, None), played(env, config, found.connect()))


def test_a_client_with_another_network_is_refused() -> None:
    env, config = CASES["turns"]
    other = build_network(spec_of(env), NetworkConfig(hidden=(8,)), seed=0)
    with served(env, config, name="refused-" + secrets.token_hex(4)) as found:
        name = found.server.name
        client = SocketClient(name, spec_of(env), other, capacity=4, deadline_s=5.0)
        with pytest.raises(InferenceLost, match="the network here needs"):
            client.hold("main", weights_in(other))


DECIDE_HEAD = b"D" + bytes(12)
DECIDES = (
    DECIDE_HEAD,
    DECIDE_HEAD + b"\xff\xff\xff\xff\x04\x00main",
    DECIDE_HEAD + b"\x00\x00\x00\x00\x04\x00main",
    DECIDE_HEAD + b"\x01\x00\x00\x00\x09\x00main",
    DECIDE_HEAD + b"\x01\x00\x00\x00\x00\x00",
    b"D" + bytes(4) + b"\x0c" + bytes(7) + b"\x01\x00\x00\x00\x04\x00main",
)
"""No part, too many rows, none, a name that is too long for the message, none, and a row behind the last one."""


@pytest.mark.parametrize("message", [b"", b"X", b"D", *DECIDES, b"P\x00"])
def test_a_message_that_is_none_ends_no_server(message: bytes) -> None:
    env, config = CASES["turns"]
    with served(env, config) as found:
        client = found.connect()
        client.hold("main", weights_of(env, config)["main"])
        assert client._end is not None
        if message:
            client._end.send(message)
            assert client._end.recv(1 << 12)[:1] == b"e"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.settimeout(5.0)
            stranger.connect(local_address(found.server.name))
            stranger.send(b"H{}")
            assert stranger.recv(1 << 12)[:1] == b"e"
        client.hold("main", weights_of(env, config)["main"])


def test_sizes_travel_as_they_are() -> None:
    from league.agents.acting.central.messages import hello, read_hello

    sizes = RowSizes(3, 1, 2, 4, 5)
    assert read_hello(hello(sizes)) == sizes
