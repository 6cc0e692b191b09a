"""Acting with random actions: the ladder over all games of all hosts, legal actions alone, and what is recorded."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch

from league.agents.acting.kinds.acting_kinds import ActingPlace, make_acting
from league.agents.acting.policy import ActInputs
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import make

Q_NETWORK = NetworkConfig(hidden=(16,), head="q_values")


def test_the_ladder_is_one_over_all_games_of_all_hosts() -> None:
    found = [
        ActingPlace(host, 4, 90).ladder(np.arange(90), first=0.4, alpha=7.0) for host in range(4)
    ]  # 360 actors, as in Ape-X
    expected = [0.4 ** (1 + 7 * i / 359) for i in range(360)]
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-12)
    assert ActingPlace().ladder(np.zeros(1, np.int64), first=0.4, alpha=7.0).tolist() == [0.4]


def test_random_actions_are_legal_and_as_frequent_as_the_game_says() -> None:
    with closing(make(EnvConfig("tic_tac_toe"), num_envs=2000)) as env:
        kind = make_acting({"kind": "epsilon_greedy", "epsilon": 0.5, "alpha": 3.0}, env.spec, ActingPlace(0, 1, 2000))
        policy, rng = (
            kind.policy(build_network(env.spec, Q_NETWORK, seed=0), dtype=torch.float32),
            np.random.default_rng(0),
        )
        turn = env.reset(0)
        turn = env.step(rng.integers(0, 9, 2000))
        inputs = ActInputs(env, turn, np.arange(2000), np.zeros((2000, 0), np.float32))
        outputs = policy.act(inputs, rng)
        network = policy.network.step(
            {k: torch.from_numpy(v) for k, v in turn.obs.items()}, action_mask=torch.from_numpy(turn.action_mask)
        )
    legal, best = turn.action_mask, network.logits.argmax(-1).numpy()
    assert legal[np.arange(2000), outputs.actions].all()
    epsilons = ActingPlace(0, 1, 2000).ladder(turn.env_index, first=0.5, alpha=3.0)
    expected = (epsilons * (1 - 1 / legal.sum(1))).sum()
    assert abs((outputs.actions != best).sum() - expected) < 4 * np.sqrt(expected)
    chances = epsilons / legal.sum(1) + np.where(outputs.actions == best, 1 - epsilons, 0.0)
    np.testing.assert_allclose(np.exp(outputs.log_probs), chances, rtol=1e-5)
    values = policy.network.head.action_values(network.logits, network.values).amax(-1)
    np.testing.assert_allclose(outputs.recorded["values"], values.numpy(), rtol=1e-5)


def test_two_policies_decide_in_one_call_where_they_explore_alike() -> None:
    with closing(make(EnvConfig("tic_tac_toe"), num_envs=1)) as env:
        network, place = build_network(env.spec, Q_NETWORK, seed=0), ActingPlace()
        one, same, other = (
            make_acting(choice, env.spec, place).policy(network, dtype=torch.float32)
            for choice in ("epsilon_greedy", "epsilon_greedy", {"kind": "epsilon_greedy", "alpha": 0.0})
        )
        assert one.joins(same) and not one.joins(other)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("game", "kind", "network", "message"),
    [
        ("tic_tac_toe", "epsilon_greedy", NetworkConfig(), "network.head is a CategoricalHead; use head: q_values"),
        ("tic_tac_toe", "gaussian", Q_NETWORK, "gaussian adds noise to a box, the game takes categorical"),
        ("gymnasium:Pendulum-v1", "epsilon_greedy", NetworkConfig(), "epsilon_greedy draws numbered actions"),
        (
            "gymnasium:Pendulum-v1",
            "gaussian",
            NetworkConfig(),
            "network.head is a GaussianHead; use head: deterministic",
        ),
    ],
)
def test_a_kind_that_does_not_fit_is_refused(game: str, kind: str, network: NetworkConfig, message: str) -> None:
    with closing(make(EnvConfig(game), num_envs=1)) as env, pytest.raises(ValueError, match=message):
        make_acting(kind, env.spec, ActingPlace()).policy(build_network(env.spec, network, seed=0), dtype=torch.float32)
