"""A bot that takes the first legal action, and now and then a random one."""

import numpy as np

from league.envs.bots import legal_actions
from league.envs.protocol import BatchedEnv, Turn
from league.envs.sampling import uniform_legal


class FirstLegalBot:
    """Made with `seed` and with its options, here `slip`: the probability of a random action."""

    def __init__(self, *, seed: int, slip: float = 0.0) -> None:
        self._rng = np.random.default_rng(seed)
        self._slip = slip

    def act(self, env: BatchedEnv, turn: Turn, slots: np.ndarray) -> np.ndarray:
        """int64 [M], the actions of M of the slots that must act now; `slots` are their places in the turn."""
        legal = legal_actions(env, turn)[slots]  # all True in a game without masks
        slips = self._rng.random(slots.size) < self._slip
        return np.where(slips, uniform_legal(legal, self._rng), legal.argmax(axis=1))
