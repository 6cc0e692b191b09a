"""Scripted teams of pursuit: all on posts, all to the hill, and all but one on posts, who walks about on the hill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from league.envs.games.pursuit import COLUMN_STEPS, ROW_STEPS, Pursuit

STAY, UP, DOWN, BACK, FORWARD = range(5)


def walk(env: Pursuit, seat: int, cell: int, target: int) -> int:
    """The action that brings a seat nearer to a cell, along the row first."""
    (row, column), (to_row, to_column) = divmod(cell, env.board.width), divmod(target, env.board.width)
    if column != to_column:
        return FORWARD if (to_column > column) == (seat < env.board.seats) else BACK
    return STAY if row == to_row else (DOWN if to_row > row else UP)


class Posts:
    """Each seat walks to a post of its own and stays there."""

    def act(self, env: Pursuit, game: int, team: int) -> list[int]:
        seats = range(team * env.board.seats, (team + 1) * env.board.seats)
        return [self.one(env, seat, int(env.cells[game, seat]), game) for seat in seats]

    def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
        return walk(env, seat, cell, int(env.board.posts[seat % env.board.seats]))


class Hill(Posts):
    """All seats walk down their own side, then to the middle of the hill, and there towards whoever is on it."""

    def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
        row, side = divmod(cell, env.board.width)
        middle = env.board.height - 2
        if side in (0, env.board.width - 1) and row < middle:
            return DOWN
        if env.step_number < env.board.height - 3:  # until the last one is down
            return STAY
        other = 1 - seat // env.board.seats
        strangers = env.cells[game, other * env.board.seats : (other + 1) * env.board.seats]
        on_hill = strangers[np.isin(strangers, env.board.hills)]
        return walk(env, seat, cell, int(on_hill[0]) if on_hill.size else int(env.board.hills[4]))


class Spoilers(Posts):
    """As `Posts`, but the last seat walks at random on the hill."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one(self, env: Pursuit, seat: int, cell: int, game: int) -> int:
        if seat % env.board.seats != env.board.seats - 1:
            return super().one(env, seat, cell, game)
        if cell not in env.board.hills:
            return walk(env, seat, cell, int(env.board.hills[1]))
        row, column = divmod(cell, env.board.width)
        forward = 1 if seat < env.board.seats else -1
        steps = zip(ROW_STEPS, COLUMN_STEPS, strict=True)
        places = [((row + down) * env.board.width + column + forward * ahead) for down, ahead in steps]
        return int(self._rng.choice([action for action, place in enumerate(places) if place in env.board.hills]))


def play(first: Any, second: Any, *, games: int, **options: Any) -> float:
    """Mean return of the first team."""
    env = Pursuit(num_envs=games, **options)
    turn = env.reset(0)
    while not turn.terminated[0]:
        actions = [[*first.act(env, game, 0), *second.act(env, game, 1)] for game in range(games)]
        turn = env.step(np.array(actions).ravel())
    return float(turn.returns[:, 0].mean())


TEAMS: Mapping[str, Any] = {"posts": Posts(), "hill": Hill(), "spoilers": Spoilers(0)}
