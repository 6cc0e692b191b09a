"""Two teams on a small board that walk at once, hold posts or the hill, and catch a lone opponent by two.

The board has 2 S + 3 rows, of S seats a team. In its middle column lie S posts, at the rows 0, 2, ..., each as far from
the one team as from the other. The last three rows have the hill, nine cells around the middle column. Seats begin in
the first column of their side, in the rows 1, 3, .... A game has a fixed number of steps.

In a step all seats walk one cell or stay; a cell holds any number of seats, and a walk into the border stays. Then:

1. Two or more seats of a team on one cell, more than the other team has there, catch the seats of the other team there.
   These return to where they began. Nobody is caught in the first column of the own side.
2. A post is held by the team that has more seats on it; of equally many, whoever held it keeps it. A team earns 1 for
   each post that it holds.
3. A team with all of its seats on the hill, and none of the other team there, earns `hill`.

The reward is what the team earned less what the other one did, over the steps of a game; each catch counts `tag`.

No convention of a team beats all others. Seats that stand one to a post lose to a whole team that goes to the hill,
which earns more than all posts together. That team loses to a single seat that walks about on the hill, out of reach,
while its partners hold posts. This one loses to all posts. A seat that goes to the hill alone loses its post and earns
nothing there. So self-play, which changes seat by seat, may never come to the hill.

Observation "state", float32 [3 C + 2 P + 1 + S], as seen from the own side. It holds the own cell, and the seats of
either team on each cell. Then come the posts held by each, the part of the game that is over, and the seat's number.

Shape letters: N games, S seats a team, C cells, P = S posts, K = 2 N S slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.games.matrix import is_whole
from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, Turn

MOVES = ("stay", "up", "down", "back", "forward")
"""Names of the actions; forward is away from the own side."""
ROW_STEPS, COLUMN_STEPS = (0, -1, 1, 0, 0), (0, 0, 0, -1, 1)
HILL_SIDE = 3
MAX_SEATS, MAX_WIDTH, MAX_STEPS, MAX_PAY = 5, 15, 1000, 1000.0
NOBODY = -1


@dataclass(frozen=True, eq=False)
class PursuitBoard:
    """The places of a game; a cell is its row times the width, plus its column.

    Fields:
      seats: S. width, height: columns and rows.
      posts: int64 [P]. hills: int64 [9]. starts: int64 [2 S], where the seats begin.
      targets: int64 [2, C, 5], the cell to which each action of a team leads from each cell.
      mirror: int64 [C], each cell as the second team sees it.
      home: bool [2, C], the cells where a team cannot be caught.
    """

    seats: int
    width: int
    height: int
    posts: NDArray[np.int64]
    hills: NDArray[np.int64]
    starts: NDArray[np.int64]
    targets: NDArray[np.int64]
    mirror: NDArray[np.int64]
    home: NDArray[np.bool_]

    @classmethod
    def draw(cls, seats: int, width: int) -> PursuitBoard:
        """The board of S seats a team and an odd width."""
        height, middle, rows = 2 * seats + HILL_SIDE, width // 2, np.arange(seats)
        row, column = np.divmod(np.arange(height * width), width)
        targets = np.zeros((2, height * width, len(MOVES)), np.int64)
        for team, forward in enumerate((1, -1)):
            for action, (down, ahead) in enumerate(zip(ROW_STEPS, COLUMN_STEPS, strict=True)):
                rows_then, columns_then = row + down, np.clip(column + forward * ahead, 0, width - 1)
                targets[team, :, action] = np.clip(rows_then, 0, height - 1) * width + columns_then
        starts = (2 * rows + 1) * width
        return cls(
            seats=seats,
            width=width,
            height=height,
            posts=2 * rows * width + middle,
            hills=np.flatnonzero((row >= 2 * seats) & (np.abs(column - middle) <= HILL_SIDE // 2)),
            starts=np.concatenate([starts, starts + width - 1]),
            targets=targets,
            mirror=row * width + width - 1 - column,
            home=np.stack([column == 0, column == width - 1]),
        )


@dataclass(frozen=True)
class PursuitRules:
    """The length of a game, and what the hill pays for a step and a catch for itself."""

    steps: int
    hill: float
    tag: float


class Pursuit:
    """N games of posts, a hill and catches; teams are the seats {0 .. S-1} and {S .. 2S-1}."""

    def __init__(
        self,
        *,
        num_envs: int,
        seats: int = 3,
        steps: int = 20,
        width: int = 5,
        hill: float | None = None,
        tag: float = 1.0,
    ) -> None:
        """Draw the board.

        Args:
          seats: of a team. steps: of a game. width: columns of the board, an odd number.
          hill: pay of the hill for a step; None for 2 more than all posts pay together.
          tag: pay of a catch.
        Raises:
          EnvError: an option is out of its range.
        """
        _require("seats", seats, low=2, high=MAX_SEATS)
        _require("steps", steps, low=1, high=MAX_STEPS)
        _require("width", width, low=5, high=MAX_WIDTH)
        if width % 2 == 0:
            raise EnvError(f"pursuit: width is {width}; give an odd number, so that both teams are as far from a post")
        if num_envs < 1:
            raise EnvError(f"pursuit: num_envs is {num_envs}; it must be at least 1")
        self.board = PursuitBoard.draw(seats, width)
        self.rules = PursuitRules(steps, _pay("hill", seats + 2.0 if hill is None else hill), _pay("tag", tag))
        most = max(self.rules.hill, float(seats)) + self.rules.tag * (seats - 1)
        cells = width * self.board.height
        self.num_envs = num_envs
        self.spec = EnvSpec(
            env_id="pursuit",
            num_seats=2 * seats,
            observations={"state": ArraySpec(shape=(3 * cells + 3 * seats + 1,), dtype="float32")},
            actions=ActionSpec(kind="categorical", num_actions=len(MOVES)),
            teams=(0,) * seats + (1,) * seats,
            has_mask=False,
            max_turns=steps,
            seat_names=tuple(f"{team}_{seat}" for team in ("left", "right") for seat in range(seats)),
            information_known=True,
            return_range=(-most, most),
        )
        self._env_index = np.repeat(np.arange(num_envs, dtype=np.int64), 2 * seats)
        self._seat = np.tile(np.arange(2 * seats, dtype=np.int64), num_envs)
        self._team = np.repeat(np.arange(2), seats)
        sides = np.stack([self._team, 1 - self._team])[:, None]
        self._first = cells * (2 * np.arange(num_envs)[:, None] + sides)
        """int64 [2, N, 2 S], where the counts of a seat's own team begin among all, and those of the other one."""
        self.step_number = 0
        """Steps of the present games that are over: all games are in the same one, for they have equal lengths."""
        self.cells = np.tile(self.board.starts, (num_envs, 1))
        """int64 [N, 2 S], where the seats stand."""
        self.holders = np.full((num_envs, seats), NOBODY, np.int64)
        """int64 [N, P], the team that holds each post, `NOBODY` for none."""
        self._earned = np.zeros((num_envs, 2 * seats), np.float32)
        self._waiting = np.zeros((num_envs, 2 * seats), np.float32)  # earned in the last step

    def reset(self, seed: int) -> Turn:
        """Restart every game. Nothing in this game is random, so the seed changes nothing."""
        self._restart()
        return self._turn(np.zeros_like(self._earned), ended=False)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Walk, catch, and pay: see the rules above.

        Args:
          actions: int [2 N S], in the order (game, seat): see `MOVES`.
        Raises:
          EnvError: an action is not in [0, 5).
        """
        board, rules = self.board, self.rules
        chosen = self._legal(actions).reshape(self.num_envs, -1)
        self.cells = board.targets[self._team, self.cells, chosen]
        caught = self._caught()
        self.cells = np.where(caught, board.starts, self.cells)
        counts = self._counts()
        margin = rules.tag * (caught[:, board.seats :].sum(axis=1) - caught[:, : board.seats].sum(axis=1))
        on_posts = counts[:, :, board.posts]
        ahead = np.sign(on_posts[:, 0] - on_posts[:, 1])
        kept = np.where(on_posts[:, 0] > 0, self.holders, NOBODY)  # of equally many
        self.holders = np.where(ahead == 0, kept, (1 - ahead) // 2)
        margin += (self.holders == 0).sum(axis=1) - (self.holders == 1).sum(axis=1)
        on_hill = counts[:, :, board.hills].sum(axis=2)
        alone = (on_hill == board.seats) & (on_hill[:, ::-1] == 0)
        margin += rules.hill * (alone[:, 0].astype(np.float64) - alone[:, 1])
        rewards = np.where(self._team == 0, margin[:, None], -margin[:, None]).astype(np.float32) / rules.steps
        self._earned += rewards
        self.step_number += 1
        if self.step_number < rules.steps:
            self._waiting = rewards.copy()
            return self._turn(rewards, ended=False, counts=counts)
        returns = self._earned.copy()
        self._restart()
        return self._turn(rewards, ended=True, returns=returns)

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[Pursuit, Turn]:
        """Copy the games at `env_indices`."""
        size = {"seats": self.board.seats, "width": self.board.width}
        copies = Pursuit(num_envs=len(env_indices), **size, **asdict(self.rules))
        saved = self.save()
        step = saved.pop("step")
        return copies, copies.load({"step": step, **{name: array[env_indices] for name, array in saved.items()}})

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The step, where the seats stand, who holds the posts, and the rewards of the last step."""
        return {
            "step": np.array(self.step_number),
            "cells": self.cells.copy(),
            "holders": self.holders.copy(),
            "earned": self._earned.copy(),
            "waiting": self._waiting.copy(),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games.
        """
        if saved["cells"].shape != self.cells.shape:
            raise EnvError(f"pursuit: saved for {len(saved['cells'])} games, this env has {self.num_envs}")
        self.step_number = int(saved["step"])
        self.cells, self.holders = saved["cells"].astype(np.int64), saved["holders"].astype(np.int64)
        self._earned, self._waiting = saved["earned"].astype(np.float32), saved["waiting"].astype(np.float32)
        return self._turn(self._waiting.copy(), ended=False)

    def action_names(self, seat: int) -> tuple[str, ...]:
        """The names of a seat's actions."""
        del seat
        return MOVES

    def _legal(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != self._seat.shape or chosen.dtype.kind not in "iu":
            raise EnvError(f"pursuit: actions are {chosen.dtype} {chosen.shape}, expected int64 {self._seat.shape}")
        bad = np.flatnonzero((chosen < 0) | (chosen >= len(MOVES)))
        if bad.size:
            raise EnvError(
                f"pursuit: action {int(chosen[bad[0]])} of seat {int(self._seat[bad[0]])} is illegal in game"
                f" {int(self._env_index[bad[0]])}; legal are 0 to {len(MOVES) - 1}"
            )
        return chosen.astype(np.int64, copy=False)

    def _restart(self) -> None:
        self.step_number = 0
        self.cells = np.tile(self.board.starts, (self.num_envs, 1))
        self.holders = np.full_like(self.holders, NOBODY)
        self._earned[:] = 0
        self._waiting[:] = 0

    def _counts(self) -> NDArray[np.int64]:
        """int64 [N, 2, C], seats of each team on each cell."""
        size = self.num_envs * 2 * len(self.board.mirror)
        return np.bincount((self._first[0] + self.cells).ravel(), minlength=size).reshape(self.num_envs, 2, -1)

    def _caught(self) -> NDArray[np.bool_]:
        """bool [N, 2 S], seats that the other team catches where they stand."""
        counts = self._counts().ravel()
        own, other = counts[self._first + self.cells]
        caught: NDArray[np.bool_] = (other >= 2) & (other > own) & ~self.board.home[self._team, self.cells]
        return caught

    def _turn(
        self,
        rewards: NDArray[np.float32],
        *,
        ended: bool,
        returns: NDArray[np.float32] | None = None,
        counts: NDArray[np.int64] | None = None,
    ) -> Turn:
        return Turn(
            env_index=self._env_index,
            seat=self._seat,
            obs={"state": self._observe(self._counts() if counts is None else counts)},
            action_mask=None,
            rewards=rewards,
            terminated=np.full(self.num_envs, ended),
            truncated=np.zeros(self.num_envs, np.bool_),
            returns=np.zeros_like(rewards) if returns is None else returns,
        )

    def _observe(self, counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """float32 [K, 3 C + 2 P + 1 + S]. counts: int64 [N, 2, C]."""
        cells, seats, mirror = len(self.board.mirror), self.board.seats, self.board.mirror
        state = np.zeros((self.num_envs, 2, seats, 3 * cells + 3 * seats + 1), np.float32)
        seen = np.stack([counts, counts[:, ::-1][:, :, mirror]], axis=1)  # [N, team that looks, own or other, C]
        state[:, :, :, cells : 3 * cells] = seen.reshape(self.num_envs, 2, 1, 2 * cells)
        places = 3 * cells + np.arange(seats)
        for team in (0, 1):
            state[:, team, :, places] = (self.holders == team).T[:, :, None]
            state[:, team, :, places + seats] = (self.holders == 1 - team).T[:, :, None]
        state[:, :, :, 3 * cells + 2 * seats] = self.step_number / self.rules.steps
        state[:, :, :, -seats:] = np.eye(seats)
        flat = state.reshape(2 * seats * self.num_envs, -1)
        own = self.cells.copy()
        own[:, seats:] = mirror[own[:, seats:]]
        flat[np.arange(len(flat)), own.ravel()] = 1.0
        return flat


def _require(name: str, value: object, *, low: int, high: int) -> None:
    if not is_whole(value) or not low <= value <= high:  # type: ignore[operator]  # a number by then
        raise EnvError(f"pursuit: {name} is {value!r}; give a whole number from {low} to {high}")


def _pay(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MAX_PAY:
        raise EnvError(f"pursuit: {name} is {value!r}; give a number from 0 to {MAX_PAY:g}")
    return float(value)
