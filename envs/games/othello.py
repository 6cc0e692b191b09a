"""Othello on bitboards: a move turns over the lines of the other seat's discs that it closes in; most discs win.

A seat that cannot move must pass; the game ends when neither can. Observation "board": bool [2, 8, 8], plane 0 for the
seat to move, plane 1 for the other seat; row 0 is the top row. Actions: the cell 8 * row + column, or 64 to pass.
Reward at the end: +1 for the seat with more discs, -1 for the other, 0 for a draw.
Rules, order and numbers of the actions are those of OpenSpiel's `othello`.

Shape letters: N games, D = 4 directions that share the sign of their shift.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from league.envs.games.alternating import AlternatingGame
from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, Turn
from league.envs.sampling import pack_stream, split_stream, uniform_legal, unpack_stream

Words = NDArray[np.uint64]

CELLS, PASS = 64, 64
MAX_TURNS = 120  # 60 discs, and never two passes in a row
START_OWN, START_OTHER = np.uint64(1 << 28 | 1 << 35), np.uint64(1 << 27 | 1 << 36)
BITS = np.array([1 << cell for cell in range(CELLS)] + [0], np.uint64)  # of an action; none for a pass

_ALL, _FIRST_COL, _LAST_COL = (1 << 64) - 1, 0x0101010101010101, 0x8080808080808080
_SHIFTS = np.array([[1], [7], [8], [9]], np.uint64)
# Cells that a shift may reach: those of the column on the far side it reaches only by running round the edge.
_UP = np.array([[_ALL ^ _FIRST_COL], [_ALL ^ _LAST_COL], [_ALL], [_ALL ^ _FIRST_COL]], np.uint64)
_DOWN = np.array([[_ALL ^ _LAST_COL], [_ALL ^ _FIRST_COL], [_ALL], [_ALL ^ _LAST_COL]], np.uint64)
_SIDES = ((np.left_shift, _UP), (np.right_shift, _DOWN))


def legal_cells(own: Words, other: Words) -> Words:
    """The empty cells, uint64 [N], on which a disc of `own` closes in at least one line of `other`."""
    cells = np.zeros_like(own)
    for shift, reach in _SIDES:
        lines = shift(own, _SHIFTS) & reach  # [D, N]
        through = other & reach
        lines &= through
        for _ in range(5):  # at most six discs lie between two on a board of eight
            lines |= shift(lines, _SHIFTS) & through
        cells |= np.bitwise_or.reduce(shift(lines, _SHIFTS) & reach, axis=0)
    cells &= ~(own | other)
    return cells


def turned(own: Words, other: Words, disc: Words) -> Words:
    """The discs of `other`, uint64 [N], that `disc` of `own` turns over; disc: one bit each, 0 for a pass."""
    discs = np.zeros_like(own)
    for shift, reach in _SIDES:
        through = other & reach
        lines = shift(disc, _SHIFTS) & through  # [D, N]
        for _ in range(5):
            lines |= shift(lines, _SHIFTS) & through
        closed = (shift(lines, _SHIFTS) & reach & own) != 0
        lines[~closed] = 0
        discs |= np.bitwise_or.reduce(lines, axis=0)
    return discs


class Othello(AlternatingGame):
    """N games of Othello."""

    def __init__(self, *, num_envs: int, opening_plies: int = 0) -> None:
        """Validate the options; `reset` starts the games.

        Args:
          opening_plies: uniformly random legal plies, passes included, played at each start; they never end the game.
        Raises:
          EnvError: num_envs < 1, or opening_plies outside [0, 30].
        """
        if not isinstance(opening_plies, int) or not 0 <= opening_plies <= 30:
            raise EnvError(f"othello: opening_plies is {opening_plies!r}; it must be an int in [0, 30]")
        spec = EnvSpec(
            env_id="othello",
            num_seats=2,
            observations={"board": ArraySpec(shape=(2, 8, 8), dtype="bool")},
            actions=ActionSpec(kind="categorical", num_actions=CELLS + 1),
            teams=(0, 1),
            has_mask=True,
            max_turns=MAX_TURNS,
            seat_names=("black", "white"),
            return_range=(-1.0, 1.0),
            win_draw_loss=True,
        )
        super().__init__(spec, num_envs=num_envs)
        self._opening_plies = opening_plies
        self._rng = np.random.default_rng(0)
        self._own = np.zeros(num_envs, np.uint64)
        self._other = np.zeros(num_envs, np.uint64)
        self._seat = np.zeros(num_envs, np.int64)
        self._legal = np.zeros(num_envs, np.uint64)  # cells that the seat to move may take; none: it must pass

    def reset(self, seed: int) -> Turn:
        """Restart every game from the four discs, or from a random opening if the config asks for one."""
        self._rng = np.random.default_rng(seed)
        self._restart(self._env_index)
        return self._quiet_turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Play one cell or a pass in every game.

        Args:
          actions: int [N], each in [0, 64] and legal.
        Raises:
          EnvError: an action is illegal; the message lists the legal ones.
        """
        disc = BITS[self._checked(actions)]
        discs = turned(self._own, self._other, disc)
        placed, left = self._own | disc | discs, self._other & ~discs
        self._own, self._other, self._seat = left, placed, 1 - self._seat
        self._legal = legal_cells(left, placed)
        terminated = np.zeros(self.num_envs, np.bool_)
        rewards = np.zeros((self.num_envs, 2), np.float32)
        stuck = np.flatnonzero(self._legal == 0)
        ended = stuck[legal_cells(placed[stuck], left[stuck]) == 0]
        if ended.size:
            terminated[ended] = True
            mover = np.sign(_count(left[ended]) - _count(placed[ended]))  # of the seat that would move
            rewards[ended, self._seat[ended]] = mover
            rewards[ended, 1 - self._seat[ended]] = -mover
            self._restart(ended)
        return self._turn(rewards, terminated)

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[Othello, Turn]:
        """Copy the games at `env_indices`; their later openings come from a stream of their own."""
        copies = Othello(num_envs=len(env_indices), opening_plies=self._opening_plies)
        copies._rng = split_stream(self._rng)
        copies._own, copies._other = self._own[env_indices], self._other[env_indices]
        copies._seat, copies._legal = self._seat[env_indices], self._legal[env_indices]
        return copies, copies._quiet_turn()

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The discs and the seat to move of every game, and the random stream."""
        return {
            "own": self._own.copy(),
            "other": self._other.copy(),
            "seat": self._seat.copy(),
            "rng": pack_stream(self._rng),
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games.
        """
        self._require_same_number(saved, "own")
        self._rng = unpack_stream(saved["rng"])
        self._own, self._other = saved["own"].astype(np.uint64), saved["other"].astype(np.uint64)
        self._seat = saved["seat"].astype(np.int64)
        self._legal = legal_cells(self._own, self._other)
        return self._quiet_turn()

    def _checked(self, actions: NDArray[np.generic]) -> NDArray[np.int64]:
        """The actions, after checking that they are legal."""
        chosen = self._integers(actions)
        inside = (chosen >= 0) & (chosen <= PASS)
        legal = np.where(chosen == PASS, self._legal == 0, (self._legal & BITS.take(chosen, mode="clip")) != 0) & inside
        self._require_legal(chosen, legal)
        return chosen

    def _restart(self, games: NDArray[np.int64]) -> None:
        self._own[games], self._other[games], self._seat[games] = START_OWN, START_OTHER, 0
        if self._opening_plies:
            self._own[games], self._other[games], self._seat[games] = self._deal(games.size)
        self._legal[games] = legal_cells(self._own[games], self._other[games])

    def _deal(self, count: int) -> tuple[Words, Words, NDArray[np.int64]]:
        """Own and other discs [count] and the seat to move, after random openings that end no game."""
        own, other, seat = np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros(count, np.int64)
        missing = np.arange(count)
        while missing.size:
            board = Othello(num_envs=missing.size)
            turn, ended = board.reset(0), np.zeros(missing.size, np.bool_)
            for _ in range(self._opening_plies):
                assert turn.action_mask is not None
                turn = board.step(uniform_legal(turn.action_mask, self._rng))
                ended |= turn.ended
            done = missing[~ended]
            own[done], other[done], seat[done] = board._own[~ended], board._other[~ended], board._seat[~ended]
            missing = missing[ended]
        return own, other, seat

    def _mask(self) -> NDArray[np.bool_]:
        mask = np.empty((self.num_envs, CELLS + 1), np.bool_)
        mask[:, :CELLS] = _unpacked(self._legal)
        mask[:, PASS] = self._legal == 0
        return mask

    def _shown(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        boards = _unpacked(np.stack([self._own, self._other], axis=1))
        return self._seat.copy(), {"board": boards.reshape(self.num_envs, 2, 8, 8)}, self._mask()


def _unpacked(words: Words) -> NDArray[np.bool_]:
    """bool [N, 64 W] of words [N] or [N, W], the lowest bit first."""
    octets = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(len(words), -1)
    return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)


def _count(words: Words) -> NDArray[np.int64]:
    return np.bitwise_count(words).astype(np.int64)
