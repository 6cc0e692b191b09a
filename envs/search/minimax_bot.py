"""Minimax bot: solves small two-seat games exactly and plays uniformly among the best moves.

Positions with equal observations of the seat to move count as one, so the observation must be the full state.

Shape letters: P positions, A actions, K slots.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.bots import Copyable, copies, legal_actions
from league.envs.protocol import BatchedEnv, EnvError, Turn
from league.envs.sampling import uniform_legal

MAX_POSITIONS = 20_000
"""Most positions to solve: tic-tac-toe has 5,478, Connect Four 4.5e12."""


@dataclass(frozen=True)
class _Moves:
    """Every legal move of positions at the same depth.

    Fields:
      keys: [P] of the positions. legal: bool [P, A].
      position, move: int64 [M], the index of the position and the move in it.
      earned: float32 [M], return of the position's seat if the game ends with the move.
      after: [M] key of the next position, None if the game ends.
      same_seat: bool [M], True if the same seat moves again.
    """

    keys: list[bytes]
    legal: NDArray[np.bool_]
    position: NDArray[np.int64]
    move: NDArray[np.int64]
    earned: NDArray[np.float32]
    after: list[bytes | None]
    same_seat: NDArray[np.bool_]


class MinimaxBot:
    """Plays uniformly among the moves that are best under perfect play of both seats."""

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._worth: dict[bytes, NDArray[np.float32]] = {}  # key -> [A], value of each move for the seat to move

    def act(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> NDArray[np.generic]:
        """See `Bot.act`; for small games of two seats in which one gains what the other loses."""
        if env.spec.num_seats != 2:
            raise EnvError(f"the bot minimax plays games of two seats, {env.spec.env_id} has {env.spec.num_seats}")
        if not slots.size:
            return np.zeros(0, np.int64)
        games, now = copies(env, turn, slots, bot="minimax")
        with ExitStack() as opened:
            opened.enter_context(closing(games))
            self._solve(games, now, opened)
        worth = np.stack([self._worth[key] for key in _keys(now)])
        return uniform_legal(worth == worth.max(axis=1, keepdims=True), self._rng)

    def _solve(self, games: BatchedEnv, now: Turn, opened: ExitStack) -> None:
        """Solve the present positions and all that follow from them: expand move by move, then back values up.

        opened: closes the copies that are made.
        """
        steps: list[_Moves] = []
        count = len(self._worth)
        new = self._unknown(_keys(now))
        while new.size:
            assert isinstance(games, Copyable)
            positions, asked = games.fork(new)
            opened.enter_context(closing(positions))
            count += new.size
            if count > MAX_POSITIONS:
                raise EnvError(
                    f"the bot minimax solves games of at most {MAX_POSITIONS:,} positions,"
                    f" {games.spec.env_id} has more; use mcts:N"
                )
            step, games, now = _try_all(positions, asked, opened)
            steps.append(step)
            new = self._unknown([key for key in step.after if key is not None])
            going_on = np.flatnonzero([key is not None for key in step.after])
            new = going_on[new]
        for step in reversed(steps):
            self._note(step)

    def _unknown(self, keys: list[bytes]) -> NDArray[np.int64]:
        """Indices of the first occurrence of every key that is not solved yet."""
        first: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if key not in self._worth:
                first.setdefault(key, place)
        return np.array(list(first.values()), np.int64)

    def _note(self, step: _Moves) -> None:
        """Record the values of the moves; every position after them is recorded already."""
        worth = np.full(step.legal.shape, -np.inf, np.float32)
        for place, (earned, key) in enumerate(zip(step.earned, step.after, strict=True)):
            value = earned
            if key is not None:
                value = self._worth[key].max() * (1 if step.same_seat[place] else -1)
            worth[step.position[place], step.move[place]] = value
        self._worth.update(zip(step.keys, worth, strict=True))


def _try_all(positions: BatchedEnv, asked: Turn, opened: ExitStack) -> tuple[_Moves, BatchedEnv, Turn]:
    """Try every legal move of every position; returns the moves, and the games and the turn after them."""
    assert isinstance(positions, Copyable)
    legal = legal_actions(positions, asked)
    position, move = np.nonzero(legal)
    tried, _ = positions.fork(position)
    opened.enter_context(closing(tried))
    after = tried.step(move)
    ended = after.ended
    if np.abs(after.returns[ended].sum(axis=1)).max(initial=0.0) > 0:
        raise EnvError(f"the bot minimax needs one seat to gain what the other loses; {positions.spec.env_id} does not")
    seat = asked.seat[position]
    keys: list[bytes | None] = list(_keys(after))
    for place in np.flatnonzero(ended):
        keys[place] = None
    step = _Moves(
        keys=_keys(asked),
        legal=legal,
        position=position,
        move=move,
        earned=np.where(ended, after.returns[np.arange(len(seat)), seat], 0).astype(np.float32),
        after=keys,
        same_seat=after.seat == seat,
    )
    return step, tried, after


def _keys(turn: Turn) -> list[bytes]:
    """Keys [K] of positions: the seat to move and its observation."""
    fields = [np.ascontiguousarray(turn.obs[name]) for name in sorted(turn.obs)]
    return [bytes([seat]) + b"".join(field[row].tobytes() for field in fields) for row, seat in enumerate(turn.seat)]
