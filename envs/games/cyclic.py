"""One-shot games in which every choice loses to another, so that plain self-play runs in cycles.

Source: Balduzzi et al. 2019, Open-ended learning in symmetric zero-sum games (the disc game).
"""

from __future__ import annotations

import numpy as np

from league.envs.games.matrix import MatrixGame, is_whole, stakes_of
from league.envs.protocol import EnvError

MAX_ACTIONS = 1001


class CyclicGame(MatrixGame):
    """An odd number of choices in a circle: each beats the half behind it and loses to the half before it.

    Choice i beats i - 1, ..., i - (A - 1) / 2 (mod A). A win takes the stake of the winner's choice.
    """

    def __init__(self, *, num_envs: int, num_actions: int = 9, stakes: tuple[float, ...] | None = None) -> None:
        """stakes: one for each choice, above 0; None is 1 for all.

        Raises:
          EnvError: the number of choices is not odd and at least 3, or the stakes do not fit.
        """
        if not is_whole(num_actions) or num_actions % 2 == 0 or not 3 <= num_actions <= MAX_ACTIONS:
            raise EnvError(f"cyclic_game: num_actions is {num_actions!r}; give an odd number in [3, {MAX_ACTIONS}]")
        given = [1.0] * num_actions if stakes is None else stakes
        worth = stakes_of("cyclic_game", given, what=f"{num_actions} numbers above 0", count=num_actions)
        choice = np.arange(num_actions)
        ahead = (choice[:, None] - choice[None, :]) % num_actions
        wins = (ahead > 0) & (ahead <= num_actions // 2)
        taken = wins * worth[:, None]
        super().__init__(num_envs=num_envs, payoffs=(taken - taken.T).tolist(), env_id="cyclic_game")


class DiscGame(MatrixGame):
    """Two points of the unit disc; the first seat earns the sine of the angle by which it is ahead, times both radii.

    u x v = u_y v_x - u_x v_y: against any point that is not the centre the best reply lies on the rim, a quarter turn
    ahead. The disc is a grid of numbered points (the centre, then `rings` circles of `points` each). A mixture over
    numbered points has an exact exploitability, and such a game is exposed like every other. On a box, an
    actor-critic's normal distribution would also hide in the centre, where there is nothing to exploit.
    The centre is left out by default for the same reason.
    """

    def __init__(self, *, num_envs: int, points: int = 16, rings: int = 2, centre: bool = False) -> None:
        """points: on each circle; rings: circles, evenly spaced up to the rim; centre: if True, a point too.

        Raises:
          EnvError: fewer than 3 points or 1 ring, more points in all than a table may have, or no whole numbers.
        """
        are_whole = is_whole(points) and is_whole(rings)
        if not are_whole or points < 3 or rings < 1 or points * rings >= MAX_ACTIONS:
            raise EnvError(
                f"disc_game: {rings!r} rings of {points!r} points; give at least 1 of 3, fewer than {MAX_ACTIONS} in "
                "all"
            )
        angles = 2 * np.pi * np.arange(points) / points
        radii = np.arange(1, rings + 1) / rings
        places = (radii[:, None] * np.exp(1j * angles)).ravel()
        places = np.concatenate([[0.0], places]) if centre else places
        table = (places[:, None] * places[None, :].conj()).imag
        super().__init__(num_envs=num_envs, payoffs=table.round(12).tolist(), env_id="disc_game")
