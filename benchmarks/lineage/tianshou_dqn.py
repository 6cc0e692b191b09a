"""DQN of tianshou on CartPole, with the settings of its own example, in one process on one core."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from typing import Any

import gymnasium

from benchmarks.lineage.judged_games import JudgedGames

CARTPOLE, RETURN = "CartPole-v1", 475.0
GAMES = 10
EPSILON, LAST_EPSILON = 0.1, 0.05


class _OverError(Exception):
    """Ends a training from its callback."""


def is_installed() -> bool:
    """True where it can be imported."""
    return importlib.util.find_spec("tianshou") is not None


def dqn(seed: int, *, core_s: float) -> float | None:
    """Core-seconds to the return on CartPole, judged by greedy games; None where the budget does not do.

    Source: tianshou 2, examples/discrete/discrete_dqn.py: ten envs, one gradient step of 64 for ten steps, n = 3.
    """
    torch, data = importlib.import_module("torch"), importlib.import_module("tianshou.data")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    importlib.import_module("numpy.random").seed(seed)
    env = gymnasium.make(CARTPOLE)
    algorithm = _algorithm(env)
    policy, games = algorithm.policy, JudgedGames(CARTPOLE, core_s=core_s, enough=RETURN)

    def act(seen: Any) -> Any:
        with torch.no_grad():
            return policy(data.Batch(obs=seen, info={})).act

    def judge(epoch: int, env_steps: int) -> None:
        del epoch
        policy.set_eps_training(EPSILON if env_steps < 10_000 else LAST_EPSILON)
        if games.is_over(act):
            raise _OverError

    envs = importlib.import_module("tianshou.env").DummyVectorEnv([lambda: gymnasium.make(CARTPOLE)] * GAMES)
    envs.seed(seed)
    collector = data.Collector(algorithm, envs, data.VectorReplayBuffer(20_000, GAMES), exploration_noise=True)
    collector.reset()
    policy.set_eps_training(EPSILON)
    collector.collect(n_step=64 * GAMES)
    params = importlib.import_module("tianshou.trainer").OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=10**6,
        epoch_num_steps=10_000,
        collection_step_num_env_steps=10,
        update_step_num_gradient_steps_per_sample=0.1,
        batch_size=64,
        training_fn=judge,
        verbose=False,
        show_progress=False,
    )
    with contextlib.suppress(_OverError):
        algorithm.run_training(params)
    return games.reached_s


def _algorithm(env: Any) -> Any:
    algorithms = importlib.import_module("tianshou.algorithm.modelfree.dqn")
    network = importlib.import_module("tianshou.utils.net.common").Net(
        state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[128, 128, 128, 128]
    )
    return algorithms.DQN(
        policy=algorithms.DiscreteQLearningPolicy(
            model=network, action_space=env.action_space, observation_space=env.observation_space
        ),
        optim=importlib.import_module("tianshou.algorithm.optim").AdamOptimizerFactory(lr=1e-3),
        gamma=0.9,
        n_step_return_horizon=3,
        target_update_freq=320,
    )
