"""Positions that a search asks for: copies of the games at the roots, played along given moves.

Shape letters: K roots, G walks, D most moves of a walk, A actions, S seats.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from league.envs.bots import Copyable, legal_actions
from league.envs.protocol import BatchedEnv, EnvError, Turn

FEW = 16
"""Copies that are stepped to the end all together: to copy half of them again would take longer than it saves."""

SEED = 2_718
"""Of the odd factors of the digest of a position."""


@dataclass(frozen=True)
class Positions:
    """Positions in which one seat must act, or games that are over.

    Fields:
      obs: name -> [G, ...]. legal: bool [G, A]. seat: int64 [G].
      earned: float32 [G, S], rewards of each seat on the way.
      over: bool [G], True where the game ended with the last move; nothing but `earned` counts there.
    """

    obs: Mapping[str, NDArray[np.generic]]
    legal: NDArray[np.bool_]
    seat: NDArray[np.int64]
    earned: NDArray[np.float32]
    over: NDArray[np.bool_]

    def at(self, rows: NDArray[np.int64]) -> Positions:
        """Some of them."""
        obs = {name: array.take(rows, axis=0) for name, array in self.obs.items()}
        return Positions(obs, self.legal[rows], self.seat[rows], self.earned[rows], self.over[rows])

    def keys(self) -> NDArray[np.uint64]:
        """uint64 [G], a digest of the seat to move and its observation."""
        total = self.seat.astype(np.uint64)
        for name in sorted(self.obs):
            total = total * _factors(1)[0] + _digest(self.obs[name])
        return total


@functools.cache
def _factors(count: int) -> NDArray[np.uint64]:
    """uint64 [count], odd."""
    return np.random.default_rng(SEED).integers(1, 2**63, count, dtype=np.uint64) | np.uint64(1)


def _digest(array: NDArray[np.generic]) -> NDArray[np.uint64]:
    """uint64 [G] of an array [G, ...]."""
    raw = np.ascontiguousarray(array).reshape(len(array), -1).view(np.uint8)
    words = np.zeros((len(array), -(-raw.shape[1] // 8) * 8), np.uint8)
    words[:, : raw.shape[1]] = raw
    numbers = words.view(np.uint64)
    numbers ^= numbers >> np.uint64(29)  # else flags in high bytes would be lost in the product
    total: NDArray[np.uint64] = (numbers * _factors(numbers.shape[1])).sum(axis=1, dtype=np.uint64)
    return total ^ (total >> np.uint64(31))


class Roots:
    """The games at the roots of a search.

    Args:
      env, turn: the games and their present turn; one seat acts at a time.
      slots: int64 [K], positions in the turn, of the seats that search.
    """

    def __init__(self, env: BatchedEnv, turn: Turn, slots: NDArray[np.int64]) -> None:
        self._env, self._games, self.spec = cast(Copyable, env), turn.env_index[slots], env.spec
        seat, obs = turn.seat[slots], {name: array.take(slots, axis=0) for name, array in turn.obs.items()}
        none = np.zeros((len(slots), env.spec.num_seats), np.float32)
        self._waiting = turn.rewards[self._games]
        self._waiting[np.arange(len(slots)), seat] = 0.0
        self.now = Positions(obs, legal_actions(env, turn)[slots], seat, none, np.zeros(len(slots), np.bool_))

    def reach(self, tree: NDArray[np.int64], moves: NDArray[np.int64], length: NDArray[np.int64]) -> Positions:
        """Play walks along their moves.

        Args:
          tree: int64 [G], number of the root of each. moves: int64 [G, D]; length: int64 [G], how many, at least 1.
        Raises:
          EnvError: a copy failed, or did not take the moves that an earlier one took.
        """
        order = np.argsort(-length, kind="stable")  # the longest first: those that are still played lead
        counts = np.searchsorted(-length[order], -np.arange(1, moves.shape[1] + 2), side="right")
        moves, tree = moves[order], tree[order]
        arrived: list[Positions] = []
        with ExitStack() as opened:
            copy, turn = self._env.fork(self._games[tree])
            opened.enter_context(closing(copy))
            earned = -self._waiting[tree]
            for depth in range(moves.shape[1]):
                playing, left = counts[depth], counts[depth + 1]
                if playing <= copy.num_envs // 2 and copy.num_envs > FEW:
                    copy, turn = cast(Copyable, copy).fork(np.arange(playing))
                    opened.enter_context(closing(copy))
                turn = _step(copy, turn, moves[: copy.num_envs, depth], playing)
                _earn(earned, turn, playing)
                if left < playing:
                    arrived.append(_arrive(copy, turn, earned, slice(left, playing)))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return _joined(arrived[::-1]).at(back)


def _step(copy: BatchedEnv, turn: Turn, moves: NDArray[np.int64], playing: int) -> Turn:
    """One move in every game; those behind the first `playing` have arrived and make any move."""
    if len(turn.env_index) != copy.num_envs:
        raise EnvError(f"search needs one seat to act at a time, in {copy.spec.env_id} several do")
    actions = moves.copy()
    if playing < len(actions):
        actions[playing:] = legal_actions(copy, turn)[playing:].argmax(axis=1)
    try:
        turn = copy.step(actions)
    except EnvError as error:
        raise EnvError(
            f"search met a copy of {copy.spec.env_id} that refuses what an earlier copy took ({error}); a game whose "
            "chance changes what is legal cannot be searched"
        ) from error
    if turn.aborted is not None and turn.aborted[:playing].any():
        raise EnvError(f"a copy of {copy.spec.env_id} failed during a search")
    return turn


def _earn(earned: NDArray[np.float32], turn: Turn, playing: int) -> None:
    """Add what the seats were paid in a step: a seat is paid when it acts again, or when its episode ends."""
    rewards = turn.rewards[:playing]
    if not rewards.any():
        return
    paid = turn.ended[:playing, None] | (np.arange(rewards.shape[1]) == turn.seat[:playing, None])
    earned[:playing] += np.where(paid, rewards, 0.0)


def _arrive(copy: BatchedEnv, turn: Turn, earned: NDArray[np.float32], rows: slice) -> Positions:
    """The positions of some games, copied: the env uses its buffers again."""
    over, seat = turn.ended[rows], turn.seat[rows].copy()
    waiting = np.where(over[:, None] | (np.arange(earned.shape[1]) == seat[:, None]), 0.0, turn.rewards[rows])
    obs = {name: array[rows].copy() for name, array in turn.obs.items()}
    return Positions(obs, legal_actions(copy, turn)[rows], seat, earned[rows] + waiting, over)


def _joined(parts: list[Positions]) -> Positions:
    if len(parts) == 1:
        return parts[0]
    return Positions(
        {name: np.concatenate([part.obs[name] for part in parts]) for name in parts[0].obs},
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("legal", "seat", "earned", "over")),
    )
