"""Two teams of two that choose at once: a table says which joint choice beats which.

Shape letters: A actions of a seat, J = A * A joint choices of a team, of which (first, second) is number A first +
second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.games.matrix import is_whole
from league.envs.games.normal_form import NormalFormGame
from league.envs.protocol import EnvError

TRAP = ((3, 0, 0), (0, 2, 2), (0, 2, 1))
"""Rank of each joint choice [A][A]: the higher one wins, and equal ones draw.

Both seats on action 0 beat everything. But a seat that tries action 0 alone loses to nearly everything. From even play
each seat does best with action 1, and no seat alone leaves (1, 1). So self-play ends there, where a team that changes
both of its seats beats it each time. A game of the kind of the counter-example in Xu et al. 2023, Fictitious
Cross-Play, section 4, with ranks of our own.
"""
MAX_ACTIONS = 8


class TeamMatrix(NormalFormGame):
    """Teams are the seats {0, 1} and {2, 3}; all seats of a team earn the same, and the other team the negative."""

    def __init__(
        self, *, num_envs: int, ranks: Sequence[Sequence[float]] = TRAP, seed: int | None = None, num_actions: int = 3
    ) -> None:
        """Make the table.

        Args:
          ranks: [A][A], by which joint choices win: 1, 0 or -1.
          seed: of a random table in place of the ranks: what a joint choice earns from another, uniform in [-1, 1].
          num_actions: A of the random table.
        Raises:
          EnvError: the ranks are no square of numbers, or a count does not fit.
        """
        table = _of_ranks(ranks) if seed is None else _random(seed, num_actions)
        count = round(len(table) ** 0.5)
        first = table.reshape((count,) * 4).astype(np.float32)
        payoffs = np.stack([first, first, -first, -first], axis=-1)
        super().__init__(env_id="team_matrix", num_envs=num_envs, payoffs=payoffs, teams=(0, 0, 1, 1))


def _of_ranks(ranks: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """[J, J], what the first team earns. Raises EnvError."""
    try:
        given = np.asarray(ranks, np.float64)
    except (TypeError, ValueError) as error:
        raise EnvError(f"team_matrix: ranks are no table of numbers: {error}") from error
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not 2 <= len(given) <= MAX_ACTIONS:
        raise EnvError(f"team_matrix: ranks are {list(given.shape)}; give a square of 2 to {MAX_ACTIONS} rows")
    if not np.isfinite(given).all():
        raise EnvError("team_matrix: ranks must be finite numbers")
    flat = given.reshape(-1)
    return np.sign(flat[:, None] - flat[None, :])


def _random(seed: int, num_actions: int) -> NDArray[np.float64]:
    """[J, J], what the first team earns: antisymmetric, uniform in [-1, 1]. Raises EnvError."""
    if not is_whole(seed) or seed < 0 or not is_whole(num_actions) or not 2 <= num_actions <= MAX_ACTIONS:
        raise EnvError(
            f"team_matrix: seed is {seed!r} and num_actions {num_actions!r}; give whole numbers, the first at least 0, "
            f"the second in [2, {MAX_ACTIONS}]"
        )
    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, (num_actions**2, num_actions**2))
    upper = np.triu(drawn, 1)
    return upper - upper.T
