"""DQN and IMPALA of RLlib on CartPole by the yardstick of `judged_games`, in one process on one core."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from benchmarks.lineage.judged_games import JudgedGames

CARTPOLE, RETURN = "CartPole-v1", 475.0
DQN: dict[str, Any] = {
    "lr": 5e-4,
    "train_batch_size_per_learner": 32,
    "replay_buffer_config": {
        "type": "PrioritizedEpisodeReplayBuffer",
        "capacity": 50_000,
        "alpha": 0.6,
        "beta": 0.4,
    },
    "n_step": (2, 5),
    "double_q": True,
    "dueling": True,
    "epsilon": [(0, 1.0), (10_000, 0.02)],
}
"""Source: RLlib, tuned_examples/dqn/cartpole_dqn.py, as is `DQN_NETWORK`."""
DQN_NETWORK: dict[str, Any] = {
    "fcnet_hiddens": [256],
    "fcnet_activation": "tanh",
    "fcnet_bias_initializer": "zeros_",
    "head_fcnet_bias_initializer": "zeros_",
    "head_fcnet_hiddens": [256],
}
IMPALA: dict[str, Any] = {
    "train_batch_size_per_learner": 500,
    "grad_clip": 40.0,
    "grad_clip_by": "global_norm",
    "lr": 5e-4,
    "vf_loss_coeff": 0.05,
    "entropy_coeff": 0.0,
}
"""Source: RLlib, tuned_examples/impala/cartpole_impala.py, for one learner; its value shares the policy's layers."""


def is_installed() -> bool:
    """True where RLlib can be imported with what it needs beside Ray."""
    return all(importlib.util.find_spec(name) is not None for name in ("ray", "tree", "pyarrow"))


def core_s_to_return(name: str, seed: int, *, core_s: float) -> float | None:
    """Core-seconds to the return, judged by greedy games; None where the budget does not do.

    Args: name: "DQN" or "IMPALA".
    """
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    algorithm = _config(name, seed).build_algo()
    games = JudgedGames(CARTPOLE, core_s=core_s, enough=RETURN)

    def act(seen: Any) -> Any:
        with torch.no_grad():
            outputs = algorithm.get_module().forward_inference({"obs": torch.from_numpy(seen)})
        chosen = outputs["actions"] if "actions" in outputs else outputs["action_dist_inputs"].argmax(-1)
        return chosen.numpy()

    try:
        while not games.is_over(act):
            algorithm.train()
    finally:
        algorithm.stop()
        importlib.import_module("ray").shutdown()
    return games.reached_s


def _config(name: str, seed: int) -> Any:
    """Games and learner are in this process, without the processes that gather batches."""
    config = getattr(importlib.import_module(f"ray.rllib.algorithms.{name.lower()}"), f"{name}Config")()
    model = importlib.import_module("ray.rllib.core.rl_module.default_model_config").DefaultModelConfig
    if name == "DQN":
        config = config.training(**DQN).rl_module(model_config=model(**DQN_NETWORK))
    else:
        config = config.training(**IMPALA).rl_module(model_config=model(vf_share_layers=True))
        config = config.learners(num_aggregator_actors_per_learner=0)
    config = config.environment(CARTPOLE).env_runners(num_env_runners=0).learners(num_learners=0)
    return config.debugging(seed=seed).reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=100)
