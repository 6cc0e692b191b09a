"""What each game of a batch showed, step by step, as plain values: for byte-for-byte comparison of runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from league.envs.failures import FaultTolerant
from league.envs.protocol import BatchedEnv, Turn
from league.envs.workers.episode_seeds import episode_seed

Shown = dict[str, Any]


def seed_of(seed: int, game: int, episode: int = 0) -> int:
    """The seed that an adapter gives to an episode of a game."""
    return episode_seed((seed,), game=game, episode=episode)


def chosen(turn: Turn, steps_of: np.ndarray, num_actions: int) -> np.ndarray:
    """A legal action for each slot, which depends on the game, its step in the episode and the seat alone."""
    wish = (turn.env_index * 7 + steps_of[turn.env_index] * 3 + turn.seat) % num_actions
    if turn.action_mask is None:
        return wish.astype(np.int64)
    order = (wish[:, None] + np.arange(num_actions)) % num_actions
    legal = np.take_along_axis(turn.action_mask, order, axis=1).argmax(axis=1)
    return order[np.arange(len(wish)), legal].astype(np.int64)


def shown(turn: Turn, game: int) -> Shown:
    """Everything that a turn shows of one game, as bytes."""
    rows = np.flatnonzero(turn.env_index == game)
    seen: Shown = {
        "seat": turn.seat[rows].tobytes(),
        "obs": {name: array[rows].tobytes() for name, array in turn.obs.items()},
        "mask": None if turn.action_mask is None else turn.action_mask[rows].tobytes(),
        "rewards": turn.rewards[game].tobytes(),
        "returns": turn.returns[game].tobytes(),
        "ended": (bool(turn.terminated[game]), bool(turn.truncated[game])),
    }
    if turn.truncated[game]:
        assert turn.final is not None
        last = np.flatnonzero(turn.final.env_index == game)
        seen["final"] = {name: array[last].tobytes() for name, array in turn.final.obs.items()}
    return seen


def play(env: BatchedEnv, *, seed: int, steps: int, tolerant: bool = True) -> tuple[list[list[Shown]], list[list[int]]]:
    """Play; returns what each game showed, [N][steps + 1], and the steps in which it was aborted, [N]."""
    if tolerant:
        assert isinstance(env, FaultTolerant)
        env.tolerate_failures()
    games = range(env.num_envs)
    aborted: list[list[int]] = [[] for _ in games]
    steps_of = np.zeros(env.num_envs, np.int64)
    turn = env.reset(seed)
    seen = [[shown(turn, game)] for game in games]
    for step in range(1, steps + 1):
        turn = env.step(chosen(turn, steps_of, env.spec.actions.num_actions))
        steps_of += 1
        steps_of[turn.ended] = 0
        for game in games:
            seen[game].append(shown(turn, game))
            if turn.aborted is not None and turn.aborted[game]:
                aborted[game].append(step)
                steps_of[game] = 0
    return seen, aborted
