"""A loaded policy of a game whose seats differ: it takes each seat's own observation and answers in its own space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import from_named, layout_of
from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.seat_plan import SeatPlan
from league.policies.loaded_policy import LoadedPolicy
from league.policies.observation import ObservationMismatch
from tests.envs.oracles.raw_roles import RawRoles

SIZES = {"red_0": 3, "red_1": 3, "blue_0": 5}
ACTIONS = {"red_0": spaces.Discrete(2), "red_1": spaces.Discrete(2), "blue_0": spaces.Discrete(4, start=3)}


def loaded(seat_plan: SeatPlan | None = None, *, core: str = "none", **options: Any) -> tuple[LoadedPolicy, RawRoles]:
    options = {"sizes": SIZES, "actions": ACTIONS, **options}
    raw = RawRoles(**options)
    env = ParallelEnv.of(lambda: raw, env_id="roles", num_envs=1, seat_plan=seat_plan or SeatPlan())
    network = build_network(env.spec, NetworkConfig(hidden=(8,), core=core), seed=0)
    named = {name: parameter.detach().numpy() for name, parameter in network.named_parameters()}
    weights = from_named(named, layout_of(network), version=1)
    return LoadedPolicy("p", network, weights, env.spec), raw


def test_each_seats_own_observation_finds_its_group() -> None:
    policy, raw = loaded()
    shown = {seat: observation / 300 for seat, observation in raw.reset()[0].items()}
    seen: dict[str, set[int]] = {}
    for _ in range(100):
        for seat, observation in shown.items():
            seen.setdefault(seat, set()).add(int(policy.act(observation)))
    assert seen == {"red_0": {0, 1}, "red_1": {0, 1}, "blue_0": {3, 4, 5, 6}}
    assert policy.probs(shown["red_1"]).tolist()[2:] == [0, 0]
    assert np.array_equal(policy.probs(shown["red_1"], seat="red_1"), policy.probs(shown["red_1"]))
    assert policy.probs(shown["blue_0"], mask=[0, 1, 0, 0]).tolist() == [0, 1, 0, 0]


def test_seats_that_look_alike_have_to_be_named() -> None:
    same = {"sizes": dict.fromkeys(SIZES, 2), "actions": dict.fromkeys(SIZES, spaces.Discrete(3))}
    policy, raw = loaded(SeatPlan(policies={"first": ("red_0",), "rest": ("red_1", "blue_0")}), **same)
    observation = raw.reset()[0]["red_0"] / 300
    with pytest.raises(ObservationMismatch, match="seats of several kinds observe that: say which of red_0, red_1"):
        policy.act(observation)
    first, rest, other = (policy.probs(observation, seat=seat) for seat in ("red_0", "red_1", 2))
    assert np.array_equal(rest, other)
    assert not np.allclose(first, rest)
    with pytest.raises(ObservationMismatch, match="has no seat 'green'; its seats are red_0, red_1, blue_0"):
        policy.act(observation, seat="green")
    with pytest.raises(ObservationMismatch, match="no seat observes that"):
        policy.act(np.zeros(7))


def test_a_policy_acts_without_what_its_value_saw_of_the_team() -> None:
    plan = SeatPlan(teams=(("red_*",), ("blue_0",)), team_observations=True)
    policy, raw = loaded(plan)
    assert policy.spec.value_fields
    assert policy.act(raw.reset()[0]["red_0"]) in (0, 1)


def test_seats_that_are_named_have_memories_of_their_own() -> None:
    together, raw = loaded(core="lstm")
    alone = {seat: loaded(core="lstm")[0] for seat in SIZES}
    shown = {seat: observation / 300 for seat, observation in raw.reset()[0].items()}
    for _ in range(3):
        for number, seat in enumerate(SIZES):
            expected = alone[seat].probs(shown[seat])
            assert np.array_equal(together.probs(shown[seat], seat=seat), expected)
            alone[seat].act(shown[seat])
            together.act(shown[seat], seat=number)
            assert not np.array_equal(together.probs(shown[seat], seat=seat), expected)
    together.reset()
    assert np.array_equal(together.probs(shown["red_1"], seat="red_1"), loaded(core="lstm")[0].probs(shown["red_1"]))
