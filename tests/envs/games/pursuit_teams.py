"""Scripted teams of pursuit: one to a post, all to the hill, and two on posts while the third walks about on the hill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from league.envs.games.pursuit import COLUMN_STEPS, ROW_STEPS, Pursuit

STAY, UP, DOWN, BACK, FORWARD = range(5)


def walk(env: Pursuit, seat: int, cell: int, target: int) -> int:
    """The action that brings a seat nearer to a cell, along the row first."""
    (row, column), (to_row, to_column) = divmod(cell, env.width), divmod(target, env.width)
    if column != to_column:
        return FORWARD if (to_column > column) == (seat < env.seats) else BACK
    return STAY if row == to_row else (DOWN if to_row > row else UP)


class Posts:
    """Each seat walks to a post of its own and stays there."""

    def act(self, env: Pursuit, game: int, team: int) -> list[int]:
        seats = range(team * env.seats, (team + 1) * env.seats)
        return [self.one(env, seat, int(env.cells[game, seat]), game) for seat in seats]

    def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
        return walk(env, seat, cell, int(env.posts[seat % env.seats]))


class Hill(Posts):
    """All seats walk to the middle of the hill, and there towards whoever is on it."""

    def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
        other = 1 - seat // env.seats
        strangers = env.cells[game, other * env.seats : (other + 1) * env.seats]
        on_hill = strangers[np.isin(strangers, env.hills)]
        return walk(env, seat, cell, int(on_hill[0]) if on_hill.size else int(env.hills[4]))


class Spoilers(Posts):
    """As `Posts`, but the last seat walks at random on the hill."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
        if seat % env.seats != env.seats - 1:
            return super().one(env, seat, cell, game)
        if cell not in env.hills:
            return walk(env, seat, cell, int(env.hills[1]))
        row, column = divmod(cell, env.width)
        forward = 1 if seat < env.seats else -1
        steps = zip(ROW_STEPS, COLUMN_STEPS, strict=True)
        places = [((row + down) * env.width + column + forward * ahead) for down, ahead in steps]
        return int(self._rng.choice([action for action, place in enumerate(places) if place in env.hills]))


def play(first: Any, second: Any, *, games: int, **options: Any) -> float:
    """Mean return of the first team."""
    env = Pursuit(num_envs=games, **options)
    turn = env.reset(0)
    while not turn.terminated[0]:
        actions = [[*first.act(env, game, 0), *second.act(env, game, 1)] for game in range(games)]
        turn = env.step(np.array(actions).ravel())
    return float(turn.returns[:, 0].mean())


TEAMS: Mapping[str, Any] = {"posts": Posts(), "hill": Hill(), "spoilers": Spoilers(0)}
