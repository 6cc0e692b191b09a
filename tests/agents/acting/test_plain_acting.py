"""The compiled step of plain networks, against forward pass and draw by torch."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from league.agents.acting import plain_acting
from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import GREEDY, NetworkPolicies, NetworkPolicy
from league.agents.acting.plain_acting import PackedNetwork, PlainActing
from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.compiled import library
from league.agents.nets.kernels.distributions import sample_categorical
from league.agents.nets.network import Network
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig, EnvSpec, Turn
from league.envs.registry import make
from tests.agents.learner.learner_cases import BOARD_GAME, FREE_GAME, LSTM, WIDE_GAME, network_of, weights_in

pytestmark = pytest.mark.skipif(library("plain_acting") is None, reason="no C compiler, or a processor without AVX2")

RELU = NetworkConfig(hidden=(128, 128), activation="relu")
DEEP = NetworkConfig(hidden=(70, 40, 33), activation="relu", value_output="tanh")
SCALED = dataclasses.replace(
    RELU,
    value_output="popart",
    input_scaling="symlog",
    input_moments={"board": ((0.5, 2.0), (1.0, 0.1), (0.0, 3.0), (-1.0, 1.0)), "x": ((1.0, 3.0),)},
)
SIZES = (130, 0, 1, 97)


def acting_of(networks: list[Network]) -> PlainActing:
    packed = [PackedNetwork.of(network) for network in networks]
    return PlainActing([one for one in packed if one is not None])


def turn_of(spec: EnvSpec, *, slots: int) -> Turn:
    """A turn of random observations and masks; some rows have one legal action."""
    rng, none = np.random.default_rng(2), np.zeros((slots, 2))
    obs = {
        name: rng.integers(0, 2 if field.dtype == "bool" else 4, (slots, *field.shape)).astype(field.dtype)
        for name, field in spec.observations.items()
    }
    mask = rng.random((slots, spec.actions.num_actions)) < 0.4
    mask[np.arange(slots), rng.integers(0, spec.actions.num_actions, slots)] = True
    return Turn(
        env_index=np.arange(slots),
        seat=np.zeros(slots, np.int64),
        obs=obs,
        action_mask=mask if spec.has_mask else None,
        rewards=none.astype(np.float32),
        terminated=none[:, 0].astype(np.bool_),
        truncated=none[:, 0].astype(np.bool_),
        returns=none.astype(np.float32),
    )


@pytest.mark.parametrize(
    ("config", "spec"),
    [
        *itertools.product(
            [RELU, DEEP, NetworkConfig(hidden=(16,), activation="relu")], [BOARD_GAME, FREE_GAME, WIDE_GAME]
        ),
        (SCALED, WIDE_GAME),
    ],
)
def test_actions_and_log_probabilities_are_those_of_torch(config: NetworkConfig, spec: EnvSpec) -> None:
    turn, rng = turn_of(spec, slots=300), np.random.default_rng(1)
    networks = [network_of(spec, config, seed=seed) for seed in range(len(SIZES))]
    slots, noise = rng.permutation(300)[: sum(SIZES)], rng.random(sum(SIZES), dtype=np.float32)
    compiled = acting_of(networks)
    assert compiled.takes(turn)
    actions, log_probs = compiled.act(turn, slots, SIZES, noise)
    assert len(np.unique(actions)) >= spec.actions.num_actions - 1
    for network, size, end in zip(networks, SIZES, np.cumsum(SIZES), strict=True):
        own = slice(end - size, end)
        obs = {name: torch.from_numpy(array[slots[own]]) for name, array in turn.obs.items()}
        mask = None if turn.action_mask is None else torch.from_numpy(turn.action_mask[slots[own]])
        with torch.inference_mode():
            logits = network.step(obs, action_mask=mask).logits
            expected, of_torch = sample_categorical(logits, torch.from_numpy(noise[own]))
        np.testing.assert_array_equal(actions[own], expected.numpy())
        np.testing.assert_allclose(log_probs[own], of_torch.numpy(), rtol=1e-5, atol=2e-5)
        if mask is not None:
            assert bool(mask.numpy()[np.arange(size), actions[own]].all())


def played(env_id: str, num_games: int, *, steps: int) -> tuple[Unrolls, object]:
    """What an arena records, and counts, where a network meets itself and two frozen ones."""
    env = make(EnvConfig(env_id), num_envs=num_games)
    policies = {name: NetworkPolicy(network_of(env.spec, RELU, seed=seed)) for seed, name in enumerate("abc")}
    table = [Assignment(("a",) * env.spec.num_seats, (True,) * env.spec.num_seats, 0.5)]
    if env.spec.num_seats == 2:
        table += [Assignment(("a", "b"), (True, False), 0.25), Assignment(("c", "a"), (False, True), 0.25)]
    arena = Arena(env, UnrollSpec(env.spec, 8), seed=3, staggered=True)
    recorded = list(arena.run(table, policies, steps=steps))
    totals = [
        (t.policies, t.games, t.decisions, t.wins.tolist(), t.return_sums.tolist()) for t in arena.take_outcomes()
    ]
    arena.close()
    return concatenate([part for part in recorded if isinstance(part, Unrolls)]), totals


@pytest.mark.parametrize("env_id", ["connect_four", "othello", "gymnasium:CartPole-v1"])
def test_an_arena_records_the_same_unrolls_with_and_without_it(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, totals = played(env_id, 70, steps=70)
    monkeypatch.setattr(plain_acting, "library", lambda name: None)
    by_torch, expected = played(env_id, 70, steps=70)
    assert totals == expected and totals
    arrays = by_torch.arrays()
    assert compiled.arrays().keys() == arrays.keys()
    for name, array in compiled.arrays().items():
        if name == "log_probs":
            np.testing.assert_allclose(array, arrays[name], rtol=1e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(array, arrays[name], err_msg=name)


@pytest.mark.parametrize("together", [False, True])
def test_adopted_weights_count_at_once(together: bool) -> None:
    turn, noise = turn_of(BOARD_GAME, slots=64), np.random.default_rng(4).random(64, dtype=np.float32)
    first, second = (network_of(BOARD_GAME, RELU, seed=seed) for seed in (1, 2))
    policy = NetworkPolicy(first)
    compiled = NetworkPolicies([policy])._compiled if together else policy._compiled
    assert compiled is not None
    found = []
    for weights in (first, second):
        policy.adopt(weights_in(weights, version=5))
        found.append(compiled.act(turn, np.arange(64), [64], noise)[1])
        np.testing.assert_array_equal(found[-1], acting_of([weights]).act(turn, np.arange(64), [64], noise)[1])
    assert not np.array_equal(*found)


def test_weights_may_be_put_elsewhere_before_the_first_decision() -> None:
    turn, noise = turn_of(BOARD_GAME, slots=64), np.random.default_rng(4).random(64, dtype=np.float32)
    policy = NetworkPolicy(network_of(BOARD_GAME, RELU))
    policy.adopt(weights_in(network_of(BOARD_GAME, RELU, seed=2), version=1))
    for parameter in policy.network.parameters():
        parameter.data = parameter.data.clone() + 0.25
    assert policy._compiled is not None
    mine, theirs = (
        each.act(turn, np.arange(64), [64], noise) for each in (policy._compiled, acting_of([policy.network]))
    )
    np.testing.assert_array_equal(mine[1], theirs[1])


def test_a_row_that_is_no_number_has_a_log_probability_that_is_none() -> None:
    turn = turn_of(BOARD_GAME, slots=3)
    turn.obs["clock"][1] = np.nan
    compiled = acting_of([network_of(BOARD_GAME, RELU)])
    _, log_probs = compiled.act(turn, np.arange(3), [3], np.full(3, 0.5, np.float32))
    assert np.isnan(log_probs).tolist() == [False, True, False]


def test_moments_are_those_of_as_many_numbers() -> None:
    turn = turn_of(WIDE_GAME, slots=3)
    compiled = acting_of([network_of(WIDE_GAME, SCALED)])
    turn.obs["board"], turn.obs["picture"] = turn.obs["board"].reshape(3, 20)[:, :18], np.zeros((3, 5), np.uint8)
    assert compiled.takes(turn)
    with pytest.raises(ValueError, match="18 numbers in a row of a field with 4 moments"):
        compiled.act(turn, np.arange(3), [3], np.zeros(3, np.float32))


def test_other_networks_and_choices_take_the_plain_way() -> None:
    network = network_of(BOARD_GAME, RELU)
    assert NetworkPolicy(network)._compiled is not None
    assert NetworkPolicy(network, choice=GREEDY)._compiled is None
    assert NetworkPolicy(network, dtype=torch.bfloat16)._compiled is None
    assert NetworkPolicy(network_of(BOARD_GAME, LSTM))._compiled is None
    assert NetworkPolicy(network_of(BOARD_GAME, NetworkConfig(hidden=(16,), activation="tanh")))._compiled is None


def test_memory_beside_the_turn_is_never_read() -> None:
    turn, noise = turn_of(BOARD_GAME, slots=4), np.zeros(2, np.float32)
    compiled = acting_of([network_of(BOARD_GAME, RELU)])
    for slots in ([0, 4], [-1, 2]):
        with pytest.raises(ValueError, match="of a turn of 4"):
            compiled.act(turn, np.array(slots), [2], noise)
    with pytest.raises(ValueError, match="2 slots"):
        compiled.act(turn, np.arange(2), [1], noise)
    wrong = dataclasses.replace(turn, obs={**turn.obs, "board": turn.obs["board"][:, :5]})
    assert not compiled.takes(wrong)
    assert not compiled.takes(dataclasses.replace(turn, obs={**turn.obs, "clock": turn.obs["clock"].astype(np.int64)}))
    assert turn.action_mask is not None
    assert not compiled.takes(dataclasses.replace(turn, action_mask=turn.action_mask[:, :4]))
