"""Scripted opponents for team games: chase and flee in mpe2's simple_tag, approach and attack in MAgent2's battle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import SEAT_GROUP, BatchedEnv, Turn

STAY, LEFT, RIGHT, DOWN, UP = range(5)
"""Actions of simple_tag."""
WALL = 0.9
"""Distance from the centre at which the runner turns back: beyond 1 it is punished."""

MOVES = (
    *((0, -2), (-1, -1), (0, -1), (1, -1)),
    *((-2, 0), (-1, 0), (0, 0), (1, 0), (2, 0)),
    *((-1, 1), (0, 1), (1, 1), (0, 2)),
)
"""Actions 0 to 12 of battle: steps (x, y)."""
ATTACKS = ((-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1))
"""Actions 13 to 20 of battle: neighbours (x, y) that are hit."""
WALLS, FRIENDS, ENEMIES = 0, 1, 3
"""Channels of what a soldier of battle sees around itself, [y, x]."""


class TagBot:
    """Taggers run at the runner along the longer axis; the runner runs from the nearest tagger, and back from walls.

    A tagger of simple_tag sees its velocity, its place, 2 landmarks, 2 taggers, the runner and the runner's velocity; a
    runner its velocity, its place, 2 landmarks and 3 taggers. Source: mpe2 1.1.1, simple_tag_v3.
    """

    def __init__(self, *, seed: int) -> None:
        del seed

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """As in `league.envs.bots.Bot`."""
        del env
        seen = np.asarray(turn.obs["observation"])[slots].astype(np.float64)
        is_tagger = np.asarray(turn.obs[SEAT_GROUP])[slots, 0]
        chase = seen[:, 12:14] + 0.3 * seen[:, 14:16]
        taggers = seen[:, 8:14].reshape(-1, 3, 2)
        nearest = np.square(taggers).sum(axis=2).argmin(axis=1)
        flee = -taggers[np.arange(len(seen)), nearest]
        place = seen[:, 2:4]
        outward = (np.abs(place) > WALL) & (np.sign(flee) == np.sign(place))
        flee = np.where(outward, 0.0, flee)
        cornered = outward.any(axis=1) & (np.abs(flee).max(axis=1) < 1e-3)
        flee = np.where(cornered[:, None], -place, flee)
        return _along(np.where(is_tagger[:, None], chase, flee))


def _along(wish: NDArray[np.float64]) -> NDArray[np.int64]:
    """Actions int64 [K] along the longer axis of directions [K, 2]."""
    across = np.abs(wish[:, 0]) >= np.abs(wish[:, 1])
    sideways = np.where(wish[:, 0] > 0, RIGHT, LEFT)
    return np.where(across, sideways, np.where(wish[:, 1] > 0, UP, DOWN)).astype(np.int64)


class BattleBot:
    """Attacks a neighbour if there is one, else steps towards the nearest enemy in sight, else towards the middle.

    Source: MAgent2 0.3.4, battle_v4; a soldier stands in the centre of what it sees.
    """

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """As in `league.envs.bots.Bot`."""
        seen = np.swapaxes(np.asarray(turn.obs["observation"])[slots], 1, 2)  # [x, y] from here on
        red = np.array([name.startswith("red") for name in env.spec.seat_names])[turn.seat[slots]]
        return np.array([self._one(view, forward=1 if is_red else -1) for view, is_red in zip(seen, red, strict=True)])

    def _one(self, view: NDArray[np.generic], *, forward: int) -> int:
        centre = view.shape[0] // 2
        enemies = np.argwhere(np.asarray(view[..., ENEMIES]) > 0) - centre
        if not len(enemies):
            return self._step(view, np.array([2 * forward, 0]))
        distances = np.abs(enemies).max(axis=1)
        nearest = enemies[distances.argmin()]
        if distances.min() == 1:
            return len(MOVES) + ATTACKS.index((int(nearest[0]), int(nearest[1])))
        return self._step(view, nearest)

    def _step(self, view: NDArray[np.generic], target: NDArray[np.int64]) -> int:
        """The free step that ends nearest to the target; any of equal ones."""
        centre = view.shape[0] // 2
        taken = np.any(np.asarray(view[..., [WALLS, FRIENDS, ENEMIES]]) != 0, axis=-1)
        lengths = [
            float(np.abs(target - step).sum())
            if step == (0, 0) or not taken[centre + step[0], centre + step[1]]
            else np.inf
            for step in MOVES
        ]
        best = np.flatnonzero(np.array(lengths) == min(lengths))
        return int(self._rng.choice(best))
