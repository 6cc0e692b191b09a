"""Batch engine, on bitboards, for two-seat games of placing stones until one seat has k in a row.

The whole state of a game is two 64-bit words: the stones of the seat to move and those of the other seat. All else
(planes, legal actions, plies, seat to move) is derived from them, and updated incrementally because that is cheaper.

Shape letters: N games, C cells of the board, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.games.alternating import AlternatingGame
from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, Turn
from league.envs.sampling import pack_stream, split_stream, uniform_legal, unpack_stream

POOL_SIZE = 1024  # openings drawn at a time: one batch of random play serves many restarts
NO_STONES = np.zeros((2, 0), np.uint64)

Openings = int | Sequence[int]
"""Plies of an opening, or the least and the most of them: each number between is drawn alike often."""


class DealtOpenings:
    """Random openings of a game, drawn many at a time and dealt one by one.

    Args:
      fewest, most: plies of an opening; each number between is drawn alike often.
      rng: draws them. stones: uint64 [2, n], that are dealt before.
    """

    def __init__(self, fewest: int, most: int, rng: np.random.Generator, stones: NDArray[np.uint64]) -> None:
        self.fewest, self.most, self.rng = fewest, most, rng
        self._stones, self._used = stones, 0

    def restarted(self, rng: np.random.Generator, stones: NDArray[np.uint64] = NO_STONES) -> DealtOpenings:
        """The same openings from another stream."""
        return DealtOpenings(self.fewest, self.most, rng, stones)

    def split(self) -> DealtOpenings:
        """Those of a copy of games: the ones that were dealt here, and then its own."""
        return self.restarted(split_stream(self.rng), self._stones[:, : self._used])

    def left(self) -> NDArray[np.uint64]:
        """Stones, uint64 [2, n], that are drawn and not dealt."""
        return self._stones[:, self._used :].copy()

    def deal(self, count: int, game: StoneGame) -> NDArray[np.uint64]:
        """Stones, uint64 [2, count], after random openings of uniform legal plies that end no game."""
        if self._used + count > self._stones.shape[1]:
            self._draw(max(count, POOL_SIZE), game)
        self._used += count
        return self._stones[:, self._used - count : self._used]

    def _draw(self, size: int, game: StoneGame) -> None:
        self._stones, self._used = np.zeros((2, size), np.uint64), 0
        lengths, missing = self._lengths(size), np.arange(size)
        while missing.size:
            board = game.plain(missing.size)
            turn, ended = board.reset(0), np.zeros(missing.size, np.bool_)
            for ply in range(self.most):
                assert turn.action_mask is not None
                turn = board.step(uniform_legal(turn.action_mask, self.rng))
                ended |= turn.ended & (lengths[missing] > ply)
                done = ~ended & (lengths[missing] == ply + 1)
                self._stones[:, missing[done]] = board.stones()[:, done]
            missing = missing[ended]

    def _lengths(self, count: int) -> NDArray[np.int64]:
        """Plies [count] of openings that are to be drawn."""
        if self.fewest == self.most:
            return np.full(count, self.most)
        return self.rng.integers(self.fewest, self.most + 1, count)


class StoneGame(AlternatingGame):
    """N games on boards of rows x cols; cell r * cols + c is row r from the top, column c.

    A subclass says which cell an action fills (`_fill`) and which actions a position allows (`_allow`).
    """

    def __init__(
        self,
        *,
        env_id: str,
        num_envs: int,
        rows: int,
        cols: int,
        in_row: int,
        num_actions: int,
        opening_plies: Openings,
    ) -> None:
        """Validate the sizes; `reset` starts the games.

        Raises:
          EnvError: num_envs < 1, or opening_plies outside [0, rows * cols // 2].
        """
        cells = rows * cols
        plies = [opening_plies, opening_plies] if isinstance(opening_plies, int) else opening_plies
        is_range = isinstance(plies, list | tuple) and len(plies) == 2 and all(isinstance(one, int) for one in plies)
        if not is_range or not 0 <= plies[0] <= plies[1] <= cells // 2:
            raise EnvError(
                f"{env_id}: opening_plies is {opening_plies!r}; it must be an int in [0, {cells // 2}], or the least "
                "and the most of such"
            )
        spec = EnvSpec(
            env_id=env_id,
            num_seats=2,
            observations={"board": ArraySpec(shape=(2, rows, cols), dtype="bool")},
            actions=ActionSpec(kind="categorical", num_actions=num_actions),
            teams=(0, 1),
            has_mask=True,
            max_turns=cells,
            seat_names=("first", "second"),
            return_range=(-1.0, 1.0),
            win_draw_loss=True,
        )
        super().__init__(spec, num_envs=num_envs)
        self._rows, self._cols, self._cells, self._in_row = rows, cols, cells, in_row
        self._openings = DealtOpenings(plies[0], plies[1], np.random.default_rng(0), NO_STONES)
        # A guard column at the end of each row keeps lines from wrapping round.
        places = (np.arange(rows)[:, None] * (cols + 1) + np.arange(cols)).ravel()
        self._places = places.astype(np.uint64)
        self._bits = np.uint64(1) << self._places
        self._shifts = np.array([1, cols, cols + 1, cols + 2], np.uint64)
        self._action_at, self._plane_at = self._first_places()
        self._own = np.zeros(num_envs, np.uint64)
        self._other = np.zeros(num_envs, np.uint64)
        self._view = np.zeros((num_envs, 2, rows, cols), np.bool_)
        self._other_view = np.zeros((num_envs, 2, rows, cols), np.bool_)
        self._plies = np.zeros(num_envs, np.int64)
        self._mask = np.ones((num_envs, num_actions), np.bool_)

    def reset(self, seed: int) -> Turn:
        """Restart every game from an empty board, or from a random opening if the config asks for one."""
        self._openings = self._openings.restarted(np.random.default_rng(seed))
        self._restart(self._env_index)
        return self._quiet_turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Place one stone in every game.

        Args:
          actions: int [N], each in [0, A) and legal.
        Raises:
          EnvError: an action is illegal; the message lists the legal ones.
        """
        chosen = self._legal(actions)
        cell = self._fill(chosen, self._action_at + chosen)
        at = self._plane_at + cell
        self._view.reshape(-1)[at] = True
        at += self._cells
        self._other_view.reshape(-1)[at] = True
        placed = np.bitwise_or(self._own, self._bits.take(cell), out=self._own)
        won = self._has_line(placed)
        mover = self._plies & 1
        self._plies += 1
        # After a ply every game shows the other seat, so the two views swap instead of being redrawn.
        self._view, self._other_view = self._other_view, self._view
        self._own, self._other = self._other, placed
        terminated = won | (self._plies == self._cells)
        rewards = np.zeros((self.num_envs, 2), np.float32)
        ended = np.flatnonzero(terminated)
        if ended.size:
            gain = won[ended].astype(np.float32)
            rewards[ended, mover[ended]] = gain
            rewards[ended, 1 - mover[ended]] = -gain
            self._restart(ended)
        return self._turn(rewards, terminated)

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[StoneGame, Turn]:
        """Copy the games at `env_indices`; they restart from openings already dealt, then from their own."""
        copies = object.__new__(type(self))  # what is not replaced below is shared and never changed
        copies.__dict__.update(self.__dict__)
        copies.num_envs, copies._env_index = len(env_indices), np.arange(len(env_indices), dtype=np.int64)
        copies._action_at, copies._plane_at = copies._first_places()
        if self._openings.most:  # else nothing is ever drawn, and the split takes longer than the copy
            copies._openings = self._openings.split()
        copies._keep(env_indices)
        return copies, copies._quiet_turn()

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The stones of every game, the openings still to be dealt and the random stream."""
        return {
            "own": self._own.copy(),
            "other": self._other.copy(),
            "openings": self._openings.left(),
            "rng": pack_stream(self._openings.rng),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games.
        """
        self._require_same_number(saved, "own")
        rng, stones = unpack_stream(saved["rng"]), saved["openings"].astype(np.uint64)
        self._openings = self._openings.restarted(rng, stones)
        self._set(self._env_index, saved["own"].astype(np.uint64), saved["other"].astype(np.uint64))
        return self._quiet_turn()

    def _keep(self, games: NDArray[np.int64]) -> None:
        """Replace the state by that of `games`, in arrays of its own."""
        self._own, self._other, self._plies = self._own[games], self._other[games], self._plies[games]
        self._view, self._other_view = self._view.take(games, axis=0), self._other_view.take(games, axis=0)
        self._mask = self._mask[games]

    def _first_places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[N] twice, where each game begins in the flat mask and in the flat planes."""
        return self._env_index * self.spec.actions.num_actions, self._env_index * 2 * self._cells

    def _fill(self, actions: NDArray[np.int64], action_at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell [N] that each action fills; also removes the actions that become illegal.

        Args: actions [N]; action_at [N], their positions in the flat [N * A] mask.
        """
        raise NotImplementedError

    def _allow(self, games: NDArray[np.int64], occupied: NDArray[np.bool_]) -> None:
        """Derive the legal actions of `games` from their occupied cells, bool [len(games), C]."""
        raise NotImplementedError

    def _allow_all(self, games: NDArray[np.int64]) -> None:
        """Allow every action of `games`, which are empty."""
        self._mask[games] = True

    def plain(self, num_envs: int) -> StoneGame:
        """The same game without openings."""
        raise NotImplementedError

    def stones(self) -> NDArray[np.uint64]:
        """uint64 [2, N], of the seat to move and of the other one."""
        return np.stack([self._own, self._other])

    def _legal(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        chosen = self._integers(actions)
        inside = (chosen >= 0) & (chosen < self.spec.actions.num_actions)
        self._require_legal(chosen, inside & self._mask.reshape(-1).take(self._action_at + chosen, mode="clip"))
        return chosen

    def _has_line(self, stones: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """bool [N], True if the stones hold `in_row` (3 or 4) in a line."""
        pairs = stones >> self._shifts[:, None]
        pairs &= stones
        twice = self._shifts[:, None] * np.uint64(2)
        pairs &= (pairs if self._in_row == 4 else stones) >> twice
        won: NDArray[np.bool_] = np.asarray(pairs.any(axis=0))
        return won

    def _restart(self, games: NDArray[np.int64]) -> None:
        if self._openings.most:
            own, other = self._openings.deal(games.size, self)
            self._set(games, own, other)
            return
        self._own[games] = self._other[games] = 0
        self._plies[games] = 0
        self._view[games] = self._other_view[games] = False
        self._allow_all(games)

    def _set(self, games: NDArray[np.int64], own: NDArray[np.uint64], other: NDArray[np.uint64]) -> None:
        """Set `games` to the positions given by these stones."""
        self._own[games], self._other[games] = own, other
        planes = ((np.stack([own, other], axis=1)[:, :, None] >> self._places) & np.uint64(1)).astype(np.bool_)
        boards = planes.reshape(games.size, 2, self._rows, self._cols)
        self._view[games], self._other_view[games] = boards, boards[:, ::-1]
        occupied = planes[:, 0] | planes[:, 1]
        self._plies[games] = occupied.sum(axis=1)
        self._allow(games, occupied)

    def _shown(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        return self._plies & 1, {"board": self._view}, self._mask.copy()
