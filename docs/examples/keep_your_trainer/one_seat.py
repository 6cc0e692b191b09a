"""PettingZoo's tic-tac-toe as one seat meets it, for trainers that know envs of one seat.

The other seat is played by a policy of the league: an object with SB3's `predict`.
"""

import gymnasium
import numpy as np
from pettingzoo.classic import tictactoe_v3

GATE = {"min_steps": 2_000, "timeout_steps": 8_000}
SETTINGS = {"players": [{"role": "main_agent", "gate": GATE}]}
RATING_GAMES = 8


class OneSeat(gymnasium.Env):
    """The game as one seat meets it. An illegal move loses: plain PPO knows no masks."""

    observation_space = gymnasium.spaces.Box(0, 1, (3, 3, 2), np.float32)
    action_space = gymnasium.spaces.Discrete(9)

    def __init__(self):
        self.game, self.noise = tictactoe_v3.raw_env(), np.random.default_rng(0)
        self.ask(0, None)

    def ask(self, seat, opponent):
        """Play the games that begin from now on so; returns the list that takes their returns by seat.

        Args: opponent: None moves at random.
        """
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

    def legal(self, policy):
        """The move of a policy for whoever is to move."""
        return legal_move(policy, self._seen(), self._mask(), self.noise)

    def _answer(self):
        """Let the opponent move where it is its turn."""
        if not any(self.game.terminations.values()) and self.game.agent_selection != self.names[self.seat]:
            self.game.step(self.legal(self.opponent))

    def _seen(self):
        return self.game.observe(self.game.agent_selection)["observation"].astype(np.float32)

    def _mask(self):
        return self.game.observe(self.game.agent_selection)["action_mask"].astype(bool)

    def _end(self, won):
        self.returns.append([won, -won] if self.seat == 0 else [-won, won])
        return np.zeros((3, 3, 2), np.float32), won, True, False, {}


def legal_move(policy, seen, mask, noise):
    """What a policy chooses; a random legal move where that is illegal, or where there is no policy."""
    action = None if policy is None else int(policy.predict(seen)[0])
    return action if action is not None and mask[action] else int(noise.choice(np.flatnonzero(mask)))


def rate(own, env, load):
    """Play the rating games that the league wants, if any. load: makes a policy of a snapshot's file."""
    if (match := own.rating_match()) is None:
        return
    first, second = (load(match.files[name]) for name in match.policies)
    returns = env.ask(0, second)
    for _ in range(RATING_GAMES):
        env.reset()
        while not env.step(env.legal(first))[2]:
            pass
    own.report(match, returns)


class Bot:
    """A policy as a bot, by which `league tournament` plays a snapshot."""

    def __init__(self, policy, seed):
        self.policy, self.noise = policy, np.random.default_rng(seed)

    def act(self, env, turn, slots):
        seen = zip(turn.obs["observation"][slots], turn.action_mask[slots], strict=True)
        return np.array([legal_move(self.policy, board, mask, self.noise) for board, mask in seen])
