"""Stable-Baselines3's PPO on PettingZoo's tic-tac-toe that meets the opponents of a league.

SB3 sees an env of one seat. The other one is played by a policy of the league, another for each rollout.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
from pettingzoo.classic import tictactoe_v3

import league

ROLLOUT = 512


class OneSeat(gymnasium.Env):
    """The game as one seat meets it. An illegal move loses: plain PPO knows no masks."""

    observation_space = gymnasium.spaces.Box(0, 1, (3, 3, 2), np.int8)
    action_space = gymnasium.spaces.Discrete(9)

    def __init__(self):
        self.game, self.noise = tictactoe_v3.raw_env(), np.random.default_rng(0)
        self.asked = 0, None, []

    def ask(self, seat, opponent):
        """Play the games that begin from now on so; returns the list that takes their returns by seat."""
        self.asked = seat, opponent, []
        return self.asked[2]

    def reset(self, *, seed=None, options=None):
        self.seat, self.opponent, self.returns = self.asked
        self.game.reset(seed=seed)
        self.names = [*self.game.possible_agents]
        self._answer()
        return self._seen(), {}

    def step(self, action):
        if not self._mask()[action]:
            return self._end(-1.0)
        self.game.step(int(action))
        self._answer()
        if any(self.game.terminations.values()):
            return self._end(float(self.game.rewards[self.names[self.seat]]))
        return self._seen(), 0.0, False, False, {}

    def _answer(self):
        """Let the opponent move where it is its turn."""
        if not any(self.game.terminations.values()) and self.game.agent_selection != self.names[self.seat]:
            mask = self._mask()
            action = None if self.opponent is None else int(self.opponent.predict(self._seen())[0])
            if action is None or not mask[action]:
                action = self.noise.choice(np.flatnonzero(mask))
            self.game.step(int(action))

    def _seen(self):
        return self.game.observe(self.game.agent_selection)["observation"]

    def _mask(self):
        return self.game.observe(self.game.agent_selection)["action_mask"].astype(bool)

    def _end(self, won):
        self.returns.append([won, -won] if self.seat == 0 else [-won, won])
        return np.zeros((3, 3, 2), np.int8), won, True, False, {}


def train(folder, rollouts, algorithm):
    """Args: algorithm: class with SB3's interface, such as PPO."""
    env, file = OneSeat(), Path(folder) / "newest.zip"
    gate = {"min_steps": 2_000, "timeout_steps": 8_000}
    settings = {"players": [{"role": "main_agent", "gate": gate}]}
    with league.League(folder, env="pettingzoo:classic/tictactoe_v3", settings=settings) as own:
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
        model.save(file)
        own.add_snapshot("main-0", file)


if __name__ == "__main__":
    from stable_baselines3 import PPO

    train("runs/sb3", rollouts=int(sys.argv[1]) if len(sys.argv) > 1 else 100, algorithm=PPO)
