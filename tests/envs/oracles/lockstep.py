"""Plays two envs side by side and finds the first difference."""

from __future__ import annotations

import numpy as np

from league.envs.bots import RandomBot
from league.envs.conformance import check_turn, differs
from league.envs.protocol import BatchedEnv, Turn


def own_copy(turn: Turn) -> Turn:
    """The turn with observations that the next step leaves alone."""
    return Turn(**{**vars(turn), "obs": {name: array.copy() for name, array in turn.obs.items()}})


def first_difference(one: BatchedEnv, two: BatchedEnv, *, steps: int, seed: int = 0) -> str:
    """ "" where both show the same turns for `steps` random legal answers, else what differs and when."""
    bot, left, right = RandomBot(seed=seed), one.reset(seed), two.reset(seed)
    for step in range(steps):
        faults = [*check_turn(one.spec, left, num_envs=one.num_envs)]
        if faults:
            return f"{faults} at step {step}"
        different = differs(left, right)
        if different:
            return f"{different} at step {step}: {getattr(left, different)} against {getattr(right, different)}"
        actions = bot.act(one, left, np.arange(left.env_index.size))
        left, right = one.step(actions), two.step(actions)
    return ""
