"""Nim: two seats take one to three stones in turn from a heap; whoever takes the last stone wins."""

import numpy as np

from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, Turn

MAX_TAKEN = 3


class Nim:
    """N games in one batch: every call steps all of them with numpy. N games, S = 2 seats, A = 3 actions."""

    def __init__(self, *, num_envs: int, stones: int) -> None:
        self.num_envs = num_envs
        self.spec = EnvSpec(
            env_id="nim",
            num_seats=2,
            observations={"heap": ArraySpec(shape=(stones + 1,), dtype="bool")},
            actions=ActionSpec(kind="categorical", num_actions=MAX_TAKEN),
            teams=(0, 1),
            has_mask=True,
            max_turns=stones,
            return_range=(-1.0, 1.0),
            win_draw_loss=True,
        )
        self._stones = stones
        self._heap = np.full(num_envs, stones)
        self._seat = np.zeros(num_envs, np.int64)

    def reset(self, seed: int) -> Turn:
        """Start every game. Nothing is random, so the seed changes nothing."""
        del seed
        self._heap[:], self._seat[:] = self._stones, 0
        return self._turn(np.zeros((self.num_envs, 2), np.float32), np.zeros(self.num_envs, np.bool_))

    def step(self, actions: np.ndarray) -> Turn:
        """Take `action + 1` stones in every game; a game that ends starts again in the same call."""
        taken = np.asarray(actions) + 1
        illegal = np.flatnonzero((taken < 1) | (taken > np.minimum(self._heap, MAX_TAKEN)))
        if illegal.size:
            game = int(illegal[0])
            raise EnvError(f"nim: game {game} has {self._heap[game]} stones, {taken[game]} cannot be taken")
        self._heap -= taken
        ended = self._heap == 0
        rewards = np.zeros((self.num_envs, 2), np.float32)
        rewards[ended, self._seat[ended]] = 1.0
        rewards[ended, 1 - self._seat[ended]] = -1.0
        self._seat = np.where(ended, 0, 1 - self._seat)
        self._heap[ended] = self._stones
        return self._turn(rewards, ended)

    def close(self) -> None:
        """Nothing to release."""

    def _turn(self, rewards: np.ndarray, ended: np.ndarray) -> Turn:
        return Turn(
            env_index=np.arange(self.num_envs),
            seat=self._seat.copy(),
            obs={"heap": np.arange(self._stones + 1) == self._heap[:, None]},
            action_mask=np.arange(1, MAX_TAKEN + 1) <= self._heap[:, None],
            rewards=rewards,
            terminated=ended,
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=rewards.copy(),  # the rewards of an episode all fall in its last step
        )


def make(num_envs: int, stones: int = 12) -> Nim:
    """The factory that `env.id` names; further arguments are the options in `env.kwargs`."""
    return Nim(num_envs=num_envs, stones=stones)
