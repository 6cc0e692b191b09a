"""RLlib's PPO on PettingZoo's tic-tac-toe that meets the opponents of a league."""

import sys
from pathlib import Path

import numpy as np
import torch
from gymnasium.wrappers import FlattenObservation
from one_seat import SETTINGS, Bot, OneSeat, rate
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.tune.registry import register_env

import league

ROLLOUT, MODULE = 512, "default_policy"


def config():
    """PPO of RLlib with its env in this process, so that the env can be given its opponents."""
    register_env("one_seat", lambda _: FlattenObservation(OneSeat()))
    made = PPOConfig().environment("one_seat").env_runners(num_env_runners=0).learners(num_learners=0)
    return made.training(train_batch_size_per_learner=ROLLOUT, minibatch_size=64, num_epochs=4, lr=3e-4)


class Policy:
    """An RLModule with SB3's `predict`."""

    def __init__(self, module):
        self.module = module

    @classmethod
    def load(cls, path):
        module = config().get_rl_module_spec(FlattenObservation(OneSeat())).build()
        module.load_state_dict(torch.load(path, weights_only=True))
        return cls(module)

    def predict(self, seen):
        with torch.no_grad():
            rows = torch.as_tensor(seen, dtype=torch.float32).reshape(1, -1)
            logits = self.module.forward_exploration({Columns.OBS: rows})[Columns.ACTION_DIST_INPUTS]
        return int(torch.distributions.Categorical(logits=logits).sample()), None


def player(path, *, seed):
    """The loader of snapshots."""
    torch.manual_seed(seed)
    return Bot(Policy.load(path), seed)


def train(folder, rollouts):
    file, loader = Path(folder) / "newest.pt", f"{Path(__file__).resolve()}:player"
    algorithm = config().build_algo()
    env = algorithm.env_runner.env.unwrapped.envs[0].unwrapped

    def save():
        weights = algorithm.learner_group.get_weights()[MODULE]
        torch.save({name: torch.as_tensor(np.asarray(value)) for name, value in weights.items()}, file)
        own.add_snapshot("main-0", file)

    with league.League(folder, env="pettingzoo:classic/tictactoe_v3", settings=SETTINGS, loader=loader) as own:
        if (newest := own.restore("main-0")) is not None:
            algorithm.set_weights({MODULE: torch.load(newest, weights_only=True)})
        for _ in range(rollouts):
            if own.snapshot_due("main-0"):
                save()
            match = own.next_match("main-0")
            returns = env.ask(match.seat, Policy.load(match.file) if match.file else Policy(algorithm.get_module()))
            algorithm.train()
            if returns:
                own.report(match, returns, env_steps=ROLLOUT)
            else:
                own.give_up(match, "no game ended")
            rate(own, OneSeat(), Policy.load)
        save()
    algorithm.stop()


if __name__ == "__main__":
    train("runs/rllib", rollouts=int(sys.argv[1]) if len(sys.argv) > 1 else 100)
