"""Policies as OpenSpiel's bots and policies: its exact value is ours, and its evaluation plays whole games."""

from __future__ import annotations

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import evaluate_bots, exploitability

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.deploy.engines.openspiel import OpenSpielBot, OpenSpielPolicy
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.policies.exact.exploitability import nash_conv
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from tests.agents.learner.learner_cases import weights_in

KUHN = EnvConfig("openspiel:kuhn_poker")
MLP, LSTM = NetworkConfig(hidden=(8,)), NetworkConfig(hidden=(8,), core="lstm", core_size=4)


def policy_of(env: EnvConfig, network: NetworkConfig = MLP, *, seed: int = 1) -> LoadedPolicy:
    built = build_network(spec_of(env), network, seed=seed)
    return LoadedPolicy("mine", built, weights_in(built), spec_of(env))


def test_openspiel_finds_the_exploitability_that_we_find() -> None:
    policy = policy_of(KUHN)
    theirs = exploitability.nash_conv(pyspiel.load_game("kuhn_poker"), OpenSpielPolicy(policy))
    assert theirs == pytest.approx(nash_conv(KUHN, policy.all_probs), abs=1e-6) and theirs > 0.1


@pytest.mark.parametrize("network", [MLP, LSTM])
def test_bots_play_whole_games_by_their_probabilities(network: NetworkConfig) -> None:
    policies = [policy_of(EnvConfig("openspiel:leduc_poker"), network, seed=seed) for seed in (1, 2)]
    mixture = LoadedMixture("mixed", [(1.0, policies[1])])
    bots = [OpenSpielBot(policies[0], 0), OpenSpielBot(mixture, 1)]
    state = pyspiel.load_game("leduc_poker").new_initial_state()
    returns = evaluate_bots.evaluate_bots(state, bots, np.random.RandomState(0))
    assert sum(returns) == 0 and any(returns)
    fresh = pyspiel.load_game("leduc_poker").new_initial_state()
    while fresh.is_chance_node():
        fresh.apply_action(fresh.legal_actions()[0])
    bots[0].restart_at(fresh)
    pairs, action = bots[0].step_with_policy(fresh)
    assert [one for one, _ in pairs] == fresh.legal_actions() and action in fresh.legal_actions()
    assert sum(chance for _, chance in pairs) == pytest.approx(1.0, abs=1e-6)
    fresh.apply_action(action)
    with pytest.raises(LeagueError, match="has not seen how this game began"):
        bots[1].restart_at(fresh)


def test_what_openspiel_cannot_ask_is_refused_in_one_sentence() -> None:
    with pytest.raises(LeagueError, match="was trained on kuhn_poker, and OpenSpiel's states"):
        OpenSpielBot(policy_of(EnvConfig("kuhn_poker")), 0)
    with pytest.raises(LeagueError, match="use OpenSpielBot"):
        OpenSpielPolicy(policy_of(KUHN, LSTM))
    bot = OpenSpielBot(policy_of(KUHN), 0)
    with pytest.raises(LeagueError, match=r"plays kuhn_poker\(\), and this is a state of leduc_poker\(\)"):
        bot.step(pyspiel.load_game("leduc_poker").new_initial_state())
