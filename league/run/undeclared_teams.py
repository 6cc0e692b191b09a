"""Finds seats that earn the same in every random game although no team is declared.

Shape letters: G games, S seats.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from envs import calls
from envs.bots import RandomBot
from envs.facts.game_statistics import equal_seats
from envs.protocol import EnvConfig, EnvError, EnvSpec
from envs.registry import make
from envs.seat_plan import listed
from league.runtime.task_thread import watched

MAX_GAMES = 16
MIN_GAMES = 3
MAX_SECONDS = 2.0
CALL_DEADLINE_S = 10.0
"""After which a call of the env is not waited for here: in training it is named, and has the deadline of a lease."""


def team_remark(config: EnvConfig, spec: EnvSpec, *, clock: Callable[[], float] = time.monotonic) -> str:
    """A sentence on seats that share their returns and no team, found in a few random games; empty if there are none.

    It takes about `MAX_SECONDS`, and only external games are tried. What fails here is reported by the training.

    Args:
      spec: of the game. clock: seconds.
    """
    if ":" not in config.id or spec.num_seats == 1 or spec.num_teams < spec.num_seats:
        return ""
    played: list[NDArray[np.float32]] = []
    try:
        watched(lambda: played.extend(random_games(config, clock)), deadline_s=CALL_DEADLINE_S, say=lambda text: None)
    except EnvError:
        return ""
    groups = equal_seats(np.array(played)) if len(played) >= MIN_GAMES else []
    if not groups:
        return ""
    names = [listed([spec.seat_names[seat] for seat in group]) for group in groups]
    teams = ", ".join(f"[{', '.join(spec.seat_names[seat] for seat in group)}]" for group in groups)
    return (
        f"{'; '.join(names)} earned the same in each of {len(played)} random games, but every seat plays for itself."
        f" If they are a team, say so: env.teams: [{teams}{', ...' * (sum(map(len, groups)) < spec.num_seats)}]"
    )


def random_games(config: EnvConfig, clock: Callable[[], float]) -> list[NDArray[np.float32]]:
    """Returns float32 [S] of a few random games.

    Raises:
      EnvError: from the env.
    """
    start, returns = clock(), list[NDArray[np.float32]]()
    with contextlib.closing(make(config, num_envs=1)) as env:
        bot, turn = RandomBot(seed=0), calls.reset(env, 0)
        while clock() - start < MAX_SECONDS and len(returns) < MAX_GAMES:
            turn = calls.step(env, bot.act(env, turn, np.arange(turn.env_index.size)))
            returns.extend(turn.returns[turn.ended])
    return returns
