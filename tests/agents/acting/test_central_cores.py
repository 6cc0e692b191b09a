"""Core states at an inference host: kept between requests, given with one, or blank."""

from __future__ import annotations

import numpy as np
import torch

from league.agents.acting.central.central_policy import CentralPolicy, DirectInferenceClient
from league.agents.acting.central.inference_host import CoreTable, InferenceHost, InferenceRequest, Part
from league.agents.acting.central.shared_rows import RowSizes, SharedRows, block_size
from league.agents.acting.policy import ActInputs, CoreRows
from league.envs.registry import make, spec_of
from tests.agents.acting.test_central import CASES, NUM_ENVS, network_of
from tests.agents.learner.learner_cases import weights_in


def test_core_states_of_clients_that_left_make_room_for_others() -> None:
    table = CoreTable(3, torch.device("cpu"))

    def start_of(key: tuple[int, int], rows: int) -> int:
        table.make_room(key, rows=rows)
        return table.start_of(key)

    assert [start_of((client, 0), 4) for client in range(3)] == [0, 4, 8]
    table.states[4:8] = 7.0
    assert start_of((1, 0), 4) == 4
    assert start_of((1, 0), 6) == 12 and torch.equal(table.states[12:16], torch.full((4, 3), 7.0))
    assert not table.states[16:18].any() and len(table) == 3
    assert start_of((3, 0), 4) == 4  # the rows that the grown table left
    assert not table.states[4:8].any()
    table.forget(1)
    table.forget(3)
    assert len(table) == 2 and len(table.states) == 18
    assert start_of((4, 1), 3) == 4


def test_a_table_that_grows_in_the_middle_of_a_request_loses_no_core_state() -> None:
    env, config = CASES["turns_core"]
    spec, network = spec_of(env), network_of(env, config, seed=1)
    host, sizes = InferenceHost(network), RowSizes.of(network, capacity=4)
    shared = SharedRows(spec, sizes, bytearray(block_size(spec, sizes)))
    for policy in ("one", "two"):
        host.hold(policy, weights_in(network))
    shared.given[:], shared.wanted[:], shared.noise[:] = True, True, 0.5
    shared.core[:] = np.arange(4)[:, None]
    shared.rows[:] = [0, 1, 30, 31]
    if shared.action_mask is not None:
        shared.action_mask[:] = True
    request = InferenceRequest(0, 0, shared, (Part("one", 0, 2), Part("two", 2, 4)))
    host.decide([request])
    after = shared.core.copy()
    shared.given[:], shared.core[:] = False, 0.0
    host.decide([request])
    again = shared.core.copy()
    shared.given[:], shared.core[:] = True, after
    host.decide([request])
    np.testing.assert_allclose(shared.core, again, rtol=1e-6)
    assert not np.allclose(after, again)


def test_a_blank_row_is_decided_from_a_state_of_zeros_that_does_not_travel() -> None:
    env, config = CASES["turns_core"]
    spec, network = spec_of(env), network_of(env, config, seed=1)
    host, sizes = InferenceHost(network), RowSizes.of(network, capacity=4)
    shared = SharedRows(spec, sizes, bytearray(block_size(spec, sizes)))
    host.hold("one", weights_in(network))
    shared.wanted[:], shared.noise[:], shared.rows[:] = True, 0.5, np.arange(4)
    if shared.action_mask is not None:
        shared.action_mask[:] = True
    found = []
    for given, blank, core in ((True, False, 0.0), (True, False, 3.0), (False, [True, False, True, False], 7.0)):
        shared.given[:], shared.blank[:], shared.core[:] = given, blank, core
        host.decide([InferenceRequest(0, 0, shared, (Part("one", 0, 4),))])
        found.append(shared.core.copy())
    from_zeros, from_threes, mixed = found
    np.testing.assert_allclose(mixed[::2], from_zeros[::2], rtol=1e-6)
    assert not np.allclose(mixed[1::2], from_zeros[1::2]) and not np.allclose(mixed[1::2], from_threes[1::2])


def test_a_new_episode_is_blank_and_a_resumed_one_is_given() -> None:
    env, config = CASES["turns_core"]
    spec, network = spec_of(env), network_of(env, config, seed=1)
    client = DirectInferenceClient(InferenceHost(network), spec, network, capacity=NUM_ENVS)
    policy = CentralPolicy("main", client)
    policy.adopt(weights_in(network))
    games = make(env, num_envs=4)
    turn, slots = games.reset(0), np.arange(4)
    core = np.zeros((4, network.core_size), np.float32)
    core[2] = 0.5
    places = CoreRows(0, slots, np.array([True, True, True, False]), np.zeros(4, np.bool_))
    policy.act(ActInputs(games, turn, slots, core, core_rows=places), np.random.default_rng(0))
    assert client.rows.blank[:4].tolist() == [True, True, False, False]
    assert client.rows.given[:4].tolist() == [False, False, True, False]
