"""Decisions of a frozen opponent that are learnt from: by its own probabilities, versions and seats."""

from __future__ import annotations

import numpy as np
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from tests.agents.acting.probe_cases import Assignment
from tests.agents.learner.learner_cases import weights_in


def log_probs(network: Network, unrolls: Unrolls) -> np.ndarray:
    """float32 [R, T], of the recorded actions."""
    steps = unrolls.actions.shape[1]
    obs = {name: torch.from_numpy(np.ascontiguousarray(array[:, :steps])) for name, array in unrolls.obs.items()}
    assert unrolls.action_mask is not None
    mask = torch.from_numpy(np.ascontiguousarray(unrolls.action_mask[:, :steps]))
    with torch.no_grad():
        logits = network.step(obs, core=torch.zeros(*mask.shape[:2], 0), action_mask=mask).logits
    chosen = torch.log_softmax(logits, -1).gather(-1, torch.from_numpy(unrolls.actions).long().unsqueeze(-1))
    return chosen.squeeze(-1).numpy()


def test_a_recorded_opponent_s_decisions_carry_its_own_probabilities_and_version() -> None:
    env = make(EnvConfig("tic_tac_toe"), num_envs=16)
    config = NetworkConfig(hidden=(16,))
    networks = {name: build_network(env.spec, config, seed=seed) for name, seed in (("home", 1), ("past", 2))}
    policies = {name: NetworkPolicy(network) for name, network in networks.items()}
    for (name, policy), version in zip(policies.items(), (90, 20), strict=True):
        policy.adopt(weights_in(networks[name], version=version))
    arena = Arena(env, UnrollSpec.of(env.spec, networks["home"], unroll_length=4), seed=0)
    rows = [Assignment(("home", "past"), (True, True), 0.5), Assignment(("past", "home"), (True, True), 0.5)]
    unrolls = concatenate(list(arena.run(rows, policies, steps=200)))
    seen = set()
    for name, version in (("home", 90), ("past", 20)):
        own = unrolls.valid & (unrolls.versions == version)
        seen.add(int(own.sum()) > 500)
        found, other = (log_probs(networks[one], unrolls)[own] for one in (name, "past" if name == "home" else "home"))
        np.testing.assert_allclose(unrolls.log_probs[own], found, atol=1e-5)
        assert np.abs(unrolls.log_probs[own] - other).max() > 0.01
    assert seen == {True}
    assert set(np.unique(unrolls.versions[unrolls.valid])) == {20, 90}
