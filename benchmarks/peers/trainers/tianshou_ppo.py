"""PPO of tianshou, with its own defaults, ten passes over a rollout, and illegal actions masked in the actor.

Eight games, each a seat's view of it; the opponent is a copy of the network at the start of each rollout.
"""

from __future__ import annotations

import contextlib
from typing import Any

import gymnasium
import numpy as np
import torch
from tianshou.algorithm.modelfree.ppo import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import MLP, AbstractDiscreteActor
from torch import nn

from benchmarks.peers.trainers.seats import DenseNetwork, OneSeat, Order, dense_layers, drawn, order_given

GAMES, ROLLOUT, BATCH, PASSES = 8, 2_048, 64, 10
LEARNING_RATE, MAX_NORM = 3e-4, 0.5
"""Of its own test of discrete PPO, test/discrete/test_ppo_discrete.py; as are batch and passes."""


class _OverError(Exception):
    """Ends the training from its callback."""


class Masked(gymnasium.Wrapper):  # type: ignore[misc]
    """An env whose observations carry the mask, as tianshou's batches do: {"obs": [D], "mask": [A]}."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        mask = gymnasium.spaces.Box(0, 1, (int(env.action_space.n),), np.int8)
        self.observation_space = gymnasium.spaces.Dict({"obs": env.observation_space, "mask": mask})

    def reset(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """See Gymnasium."""
        seen, info = self.env.reset(**options)
        return self._with_mask(seen), info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """See Gymnasium."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        return self._with_mask(seen), float(reward), terminated, truncated, info

    def _with_mask(self, seen: Any) -> dict[str, Any]:
        game = self.env.unwrapped
        mask = game.action_masks() if isinstance(game, OneSeat) else np.ones(int(self.env.action_space.n), np.bool_)
        return {"obs": np.asarray(seen, np.float32), "mask": mask.astype(np.int8)}


class MaskedActor(AbstractDiscreteActor):  # type: ignore[misc]
    """Dense layers to logits; illegal actions have hardly any probability."""

    def __init__(self, num_obs: int, hidden: tuple[int, ...], num_actions: int) -> None:
        super().__init__(num_actions)
        self.layers = MLP(input_dim=num_obs, output_dim=num_actions, hidden_sizes=hidden, activation=nn.Tanh)

    def get_preprocess_net(self) -> Any:
        """None: there is one chain of layers."""
        return None

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[torch.Tensor, Any]:
        """Logits [B, A]."""
        legal = torch.as_tensor(np.asarray(obs.mask), dtype=torch.bool)
        return self.layers(obs.obs).masked_fill(~legal, -1e9), state


class Critic(nn.Module):
    """Dense layers to a value."""

    def __init__(self, num_obs: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = MLP(input_dim=num_obs, output_dim=1, hidden_sizes=hidden, activation=nn.Tanh)

    def forward(self, obs: Any, **rest: Any) -> torch.Tensor:
        """[B, 1]."""
        values: torch.Tensor = self.layers(obs.obs)
        return values


class Training:
    """The algorithm with its games, and the callback that renews the opponents."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._rng = np.random.default_rng([order.seed, 2])
        self.rollouts = 0
        self.games = [order.make() if order.is_lone else OneSeat(order, seed=game) for game in range(GAMES)]
        first = self.games[0]
        num_obs, num_actions = int(np.prod(first.observation_space.shape)), int(first.action_space.n)
        self.actor = MaskedActor(num_obs, order.hidden, num_actions)
        self.algorithm = PPO(
            policy=DiscreteActorPolicy(actor=self.actor, action_space=first.action_space),
            critic=Critic(num_obs, order.hidden),
            optim=AdamOptimizerFactory(lr=LEARNING_RATE),
            max_grad_norm=MAX_NORM,
        )

    @property
    def layers(self) -> Any:
        """The actor's dense layers."""
        return dense_layers(list(self.actor.layers.model))

    def before_rollout(self, epoch: int, env_steps: int) -> None:
        """Renew the opponents, or end with the budget."""
        del epoch, env_steps
        if self._order.share >= 1.0:
            raise _OverError
        self.rollouts += 1
        if self._order.is_lone:
            return
        network = DenseNetwork(self.layers, "tanh")
        for game in self.games:
            game.opponent = lambda obs, legal: int(drawn(network.probs(obs[None], legal[None]), self._rng)[0])


def main() -> None:
    """Train as ordered."""
    torch.set_num_threads(1)
    order = order_given()
    torch.manual_seed(order.seed)
    np.random.seed(order.seed)
    training = Training(order)
    envs = DummyVectorEnv([lambda game=game: Masked(game) for game in training.games])
    envs.seed(order.seed)
    collector = Collector(training.algorithm, envs, VectorReplayBuffer(ROLLOUT, GAMES))
    collector.reset()
    params = OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=10**6,
        epoch_num_steps=ROLLOUT,
        collection_step_num_env_steps=ROLLOUT,
        update_step_num_repetitions=PASSES,
        batch_size=BATCH,
        training_fn=training.before_rollout,
        verbose=False,
        show_progress=False,
    )
    with contextlib.suppress(_OverError):
        training.algorithm.run_training(params)
    order.finish(training.layers, squash="tanh", figures={"decisions": float(training.rollouts * ROLLOUT)})


if __name__ == "__main__":
    main()
