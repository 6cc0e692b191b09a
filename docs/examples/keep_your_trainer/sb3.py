"""Stable-Baselines3's PPO on PettingZoo's tic-tac-toe that meets the opponents of a league."""

import sys
from pathlib import Path

from one_seat import SETTINGS, Bot, OneSeat, rate

import league

ROLLOUT = 512


def player(path, *, seed):
    """The loader of snapshots."""
    from stable_baselines3 import PPO

    return Bot(PPO.load(path), seed)


def train(folder, rollouts, algorithm):
    """Args: algorithm: class with SB3's interface, such as PPO."""
    env, file, loader = OneSeat(), Path(folder) / "newest.zip", f"{Path(__file__).resolve()}:player"
    with league.League(folder, env="pettingzoo:classic/tictactoe_v3", settings=SETTINGS, loader=loader) as own:
        newest = own.restore("main-0")
        model = algorithm("MlpPolicy", env, n_steps=ROLLOUT) if newest is None else algorithm.load(newest, env=env)
        for _ in range(rollouts):
            if own.snapshot_due("main-0"):
                model.save(file)
                own.add_snapshot("main-0", file)
            match = own.next_match("main-0")
            returns = env.ask(match.seat, algorithm.load(match.file) if match.file else model)
            model.learn(ROLLOUT, reset_num_timesteps=False)
            if returns:
                own.report(match, returns, env_steps=ROLLOUT, trained_steps=model.num_timesteps)
            else:
                own.give_up(match, "no game ended")
            rate(own, env, algorithm.load)
        model.save(file)
        own.add_snapshot("main-0", file)


if __name__ == "__main__":
    from stable_baselines3 import PPO

    train("runs/sb3", rollouts=int(sys.argv[1]) if len(sys.argv) > 1 else 100, algorithm=PPO)
