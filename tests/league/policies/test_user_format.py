"""A loaded policy plays the env itself: observations as the env shows them in, actions as the env takes them out."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvConfig, EnvError, EnvSpec
from league.envs.registry import make, spec_of
from league.policies.loaded_policy import LoadedPolicy
from league.policies.observation import ObservationMismatch, batch_of_one
from tests.agents.learner.learner_cases import weights_in
from tests.league.judge.matches import raw_envs

OWN = "tests.league.judge.matches.raw_envs:"
GAMES = {
    "gymnasium:FrozenLake-v1": lambda: gymnasium.make("FrozenLake-v1"),
    "gymnasium:Taxi-v4": lambda: gymnasium.make("Taxi-v4"),
    "gymnasium:Blackjack-v1": lambda: gymnasium.make("Blackjack-v1"),
    f"{OWN}dict_game": raw_envs.dict_game,
    f"{OWN}tuple_game": raw_envs.tuple_game,
    f"{OWN}uneven_box_game": raw_envs.uneven_box_game,
    f"{OWN}binary_game": raw_envs.binary_game,
}


def policy_for(env_id: str) -> LoadedPolicy:
    spec = spec_of(EnvConfig(env_id))
    network = build_network(spec, NetworkConfig(hidden=(4,)), seed=0)
    return LoadedPolicy("fresh", network, weights_in(network), spec)


@pytest.mark.parametrize("env_id", GAMES)
def test_a_loaded_policy_plays_the_env_as_its_users_know_it(env_id: str) -> None:
    policy, env = policy_for(env_id), GAMES[env_id]()
    observation, infos = env.reset(seed=3)
    for step in range(40):
        action = policy.act(observation, infos.get("action_mask"))
        observation, _, terminated, truncated, infos = env.step(action)
        if terminated or truncated:
            observation, infos = env.reset(seed=step)
            policy.reset(seed=step)
    env.close()


@pytest.mark.parametrize("env_id", GAMES)
def test_what_the_env_shows_is_read_as_in_training(env_id: str) -> None:
    trained, raw = make(EnvConfig(env_id), num_envs=1), GAMES[env_id]()
    turn = trained.reset(5)
    seed = trained._seed_of(0)  # type: ignore[attr-defined]
    observation, _ = raw.reset(seed=seed)
    shown = batch_of_one(observation, trained.spec)
    assert set(shown) == set(turn.obs)
    for name, field in turn.obs.items():
        np.testing.assert_array_equal(shown[name], field)
        assert shown[name].dtype == field.dtype
    trained.close()


def test_fields_as_in_the_spec_are_taken_as_before() -> None:
    spec = spec_of(EnvConfig("gymnasium:FrozenLake-v1"))
    one_hot = np.eye(16, dtype=bool)[3]
    for given in (one_hot, {"observation": one_hot}, 3, np.int64(3), np.array(3)):
        np.testing.assert_array_equal(batch_of_one(given, spec)["observation"], one_hot[None])


@pytest.mark.parametrize(
    ("env_id", "observation", "sentence"),
    [
        ("gymnasium:FrozenLake-v1", 16, "is 16, its space goes from 0 to 15"),
        ("gymnasium:FrozenLake-v1", -1, "is -1, its space goes from 0 to 15"),
        ("gymnasium:Blackjack-v1", (12, 40, 0), "'1' is 40, its space goes from 0 to 10"),
        ("gymnasium:Blackjack-v1", (12, 4), "field '2' is not where the space has it"),
        (f"{OWN}uneven_box_game", [3, 0, 0], "is 3, its space goes from 0 to 2"),
    ],
)
def test_a_value_outside_its_space_is_refused(env_id: str, observation: Any, sentence: str) -> None:
    with pytest.raises(ObservationMismatch, match=sentence):
        batch_of_one(observation, spec_of(EnvConfig(env_id)))


def lying() -> raw_envs.Told:
    """Its second number is one too large, which would be written as the first value of the third."""
    env = raw_envs.uneven_box_game()
    env.reset = lambda **options: (np.array([0, 3, 1]), {})  # type: ignore[method-assign, assignment]
    return env


def test_a_discrete_value_outside_its_space_is_an_error_of_the_env() -> None:
    env = make(EnvConfig("tests.league.policies.test_user_format:lying"), num_envs=1)
    with pytest.raises(EnvError, match="is 3, its space goes from 0 to 2"):
        env.reset(0)


def test_the_format_travels_with_the_spec_and_is_no_part_of_what_a_network_must_fit() -> None:
    spec = spec_of(EnvConfig("gymnasium:Blackjack-v1"))
    assert spec.user_format is not None
    travelled = pickle.loads(pickle.dumps(spec))
    assert travelled.user_format == spec.user_format
    one, two = (batch_of_one((12, 4, 0), other) for other in (travelled, spec))
    assert all(np.array_equal(one[name], two[name]) for name in two)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            [0.0, np.nan, 0.0, 0.0],
            r"the observation 'observation' is nan at \[1\], which is no finite",
        ),
        ([0.0, 0.0, 0.0, -np.inf], r"is -inf at \[3\]"),
        ([1e300, 0.0, 0.0, 0.0], r"is 1e\+300 at \[0\], which is no finite number of float32"),
    ],
)
def test_an_observation_that_is_no_number_is_named(numbers: list[float], message: str) -> None:
    policy = policy_for("gymnasium:CartPole-v1")
    with pytest.raises(ObservationMismatch, match=message):
        policy.act(np.array(numbers))


def test_absent_members_of_a_set_may_hold_anything() -> None:
    fields = {"units": ArraySpec((2, 3), "float32"), "units_mask": ArraySpec((2,), "bool")}
    spec = EnvSpec("sets", 1, fields, ActionSpec("categorical", num_actions=2), (0,), has_mask=False)
    network = build_network(spec, NetworkConfig(encoder="entities", hidden=(4,), entity_size=8), seed=0)
    policy = LoadedPolicy("fresh", network, weights_in(network), spec)
    units = np.array([[1.0, 2.0, 3.0], [np.nan, np.inf, 0.0]], np.float32)
    assert policy.act({"units": units, "units_mask": np.array([True, False])}) in (0, 1)
    with pytest.raises(ObservationMismatch, match=r"'units' is nan at \[1, 0\]"):
        policy.act({"units": units, "units_mask": np.array([True, True])})


def test_weights_that_have_grown_beyond_bounds_choose_nothing() -> None:
    spec = spec_of(EnvConfig("connect_four"))
    network = build_network(spec, NetworkConfig(hidden=(4,)), seed=0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0).mul_(1e30)
    policy = LoadedPolicy("main-0-s3", network, weights_in(network), spec)
    with pytest.raises(ObservationMismatch, match=r"main-0-s3 answers what is no number: .* its weights have grown"):
        policy.act(np.zeros((2, 6, 7), np.bool_))
