"""A batch of two lone seats of a user's own, which shows the masks that it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, Turn


class OwnMasks:
    """first, later: masks of the reset and of every step."""

    num_envs = 2

    def __init__(self, *, has_mask: bool, first: Any, later: Any) -> None:
        actions = ActionSpec(kind="categorical", num_actions=2)
        self.spec = EnvSpec("own", 1, {"observation": ArraySpec((1,), "float32")}, actions, (0,), has_mask)
        self.first, self.later = first, later

    def reset(self, seed: int) -> Turn:
        return self.turn(self.first)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        return self.turn(self.later)

    def close(self) -> None:
        pass

    def turn(self, mask: Any) -> Turn:
        return Turn(
            env_index=np.arange(2),
            seat=np.zeros(2, np.int64),
            obs={"observation": np.zeros((2, 1), np.float32)},
            action_mask=mask,
            rewards=np.zeros((2, 1), np.float32),
            terminated=np.zeros(2, np.bool_),
            truncated=np.zeros(2, np.bool_),
            returns=np.zeros((2, 1), np.float32),
        )
