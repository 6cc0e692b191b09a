"""A network that answers what is no number is refused; the sentence names the observation, or the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from league.agents.acting.central.central_policy import CentralPolicy, DirectInferenceClient
from league.agents.acting.central.inference_host import InferenceHost
from league.agents.acting.network_policy import NetworkPolicy, Sampling
from league.agents.acting.policy import ActInputs, NotFiniteError
from league.agents.acting.turn_policies import TurnPolicies
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.envs.protocol import BatchedEnv, EnvConfig
from league.envs.registry import make
from tests.agents.learner.learner_cases import weights_in

MLP = NetworkConfig(hidden=(16,))
GAMES = {
    "few actions": EnvConfig("connect_four"),
    "many actions": EnvConfig("othello"),
    "sub-actions": EnvConfig("probe_sub_actions", {"masked": False}),
    "box": EnvConfig("gymnasium:Pendulum-v1"),
}


def diverged(env: BatchedEnv) -> Network:
    """Weights that are finite, and so large that their products are not."""
    network = build_network(env.spec, MLP, seed=0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0).mul_(1e30)
    return network


def inputs_of(env: BatchedEnv) -> ActInputs:
    turn = env.reset(0)
    slots = np.arange(turn.env_index.size)
    return ActInputs(env, turn, slots, np.zeros((slots.size, 0), np.float32))


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("game", GAMES)
def test_weights_that_have_grown_beyond_bounds_are_named_and_not_the_game(game: str, greedy: bool) -> None:
    env = make(GAMES[game], num_envs=3)
    policy = NetworkPolicy(diverged(env), choice=Sampling(greedy))
    with pytest.raises(NotFiniteError, match=r"its weights have grown beyond bounds; lower learner\.learning_rate"):
        policy.act(inputs_of(env), np.random.default_rng(0))


def test_policies_that_act_together_name_it_too() -> None:
    env = make(GAMES["few actions"], num_envs=3)
    policies = [NetworkPolicy(build_network(env.spec, MLP, seed=0)), NetworkPolicy(diverged(env))]
    with pytest.raises(NotFiniteError, match="its weights have grown beyond bounds"):
        TurnPolicies(policies).begin(
            inputs_of(env), np.array([0, 1, 0]), np.random.default_rng(0), num_sub_actions=0
        ).take()


@pytest.mark.parametrize("game", ["few actions", "many actions"])
def test_an_inference_hosts_answers_are_looked_at_where_they_arrive(game: str) -> None:
    env, network = make(GAMES[game], num_envs=3), diverged(make(GAMES[game], num_envs=1))
    host = InferenceHost(network, device=torch.device("cpu"))
    policy = CentralPolicy("main", DirectInferenceClient(host, env.spec, network, capacity=3))
    policy.adopt(weights_in(network))
    with pytest.raises(NotFiniteError, match="its weights have grown beyond bounds"):
        policy.act(inputs_of(env), np.random.default_rng(0))


def test_an_observation_that_is_no_number_is_named_with_its_seat_and_place() -> None:
    env = make(GAMES["box"], num_envs=3)
    inputs = inputs_of(env)
    shown = {name: array.copy() for name, array in inputs.turn.obs.items()}
    shown["observation"][1, 2] = np.nan
    inputs = replace(inputs, turn=replace(inputs.turn, obs=shown))
    policy = NetworkPolicy(build_network(env.spec, replace(MLP, activation="tanh"), seed=0))
    with pytest.raises(NotFiniteError, match=r"game 1, seat 0: observation 'observation' is nan at \[2\]"):
        policy.act(inputs, np.random.default_rng(0))
