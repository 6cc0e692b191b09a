"""PPO of Stable-Baselines3, masked by sb3-contrib where actions may be illegal; its own defaults but for the entropy.

Eight games, each a seat's view of it; the opponent is a copy of the network at the start of each rollout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from benchmarks.peers.trainers.seats import DenseNetwork, OneSeat, Order, dense_layers, drawn, order_given

GAMES, STEPS = 8, 256
"""A rollout of 2,048 decisions, as its default of one game."""
ENTROPY = 0.01
"""Its default is 0, by which self-play repeats a line of play; 0.01 is the field's usual choice."""
ENDLESS = 10**9


class Budget(BaseCallback):  # type: ignore[misc]
    """Ends the training with the budget, and renews the opponents before each rollout."""

    def __init__(self, order: Order, envs: DummyVecEnv) -> None:
        super().__init__()
        self._order = order
        self._envs = envs
        self._rng = np.random.default_rng([order.seed, 2])

    def _on_rollout_start(self) -> None:
        if self._order.is_lone:
            return
        network = DenseNetwork(actor_layers(self.model), "tanh")

        def opponent(obs: Any, legal: Any) -> int:
            return int(drawn(network.probs(obs[None], legal[None]), self._rng)[0])

        for env in self._envs.envs:
            env.unwrapped.opponent = opponent

    def _on_step(self) -> bool:
        return self._order.share < 1.0


def actor_layers(model: Any) -> Any:
    """The dense layers from the observation to the logits."""
    return dense_layers([*model.policy.mlp_extractor.policy_net, model.policy.action_net])


def main() -> None:
    """Train as ordered."""
    torch.set_num_threads(1)
    order = order_given()
    envs = DummyVecEnv(
        [lambda game=game: order.make() if order.is_lone else OneSeat(order, seed=game) for game in range(GAMES)]
    )
    learner = PPO if order.is_lone else MaskablePPO
    model = learner(
        "MlpPolicy",
        envs,
        n_steps=STEPS,
        ent_coef=ENTROPY,
        policy_kwargs={"net_arch": {"pi": list(order.hidden), "vf": list(order.hidden)}},
        seed=order.seed,
        device="cpu",
    )
    model.learn(ENDLESS, callback=Budget(order, envs))
    order.finish(actor_layers(model), squash="tanh", figures={"decisions": float(model.num_timesteps)})


if __name__ == "__main__":
    main()
