"""Phantom games: two seats place stones on one board, and neither sees the other's until it tries an occupied cell.

Action: the cell that a seat tries, row by row from the top left; it may try each cell once. On an empty cell it places
a stone, and the other seat moves. A cell of the other seat is found out instead: then the seat tries again, or in the
abrupt variant its turn is over. Rewards are 1, -1 or 0 at the end of a game.

Information state, bool [2 + 2 C + C * C]: the seat (2); its own stones (C); stones of the other seat that it found (C);
then for each of its tries so far the cell (C x C). Nothing shows what the other seat tried.

Rules and order are those of OpenSpiel's `phantom_ttt` and `dark_hex` with `obstype=reveal-nothing`. Its versions
`classical` and `cdh` are the games in which a seat tries again; `abrupt` and `adh` are the abrupt ones.

Shape letters: N games, C cells, K information states, T tries.
Source: Lanctot et al. 2013, Monte Carlo sampling and decision making in imperfect information games (phantom
tic-tac-toe); Rudolph et al. 2026, Reevaluating policy gradient methods for imperfect-information games (all four).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.games.alternating import AlternatingGame
from league.envs.protocol import ActionSpec, ArraySpec, EnvError, EnvSpec, Turn

FIELD = "information_state"
MAX_CELLS = 12
"""Most cells of a board: who has won is a table over all sets of cells."""
HEX_STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1))
"""Rows and columns from a hexagonal cell to its neighbours."""


@dataclass(frozen=True)
class PhantomRules:
    """A phantom game as tables.

    Fields:
      wins: bool [2, 2 ** C], whether each seat has won with a set of stones, cell c being bit c.
      is_abrupt: True if a turn ends with a find.
    """

    wins: NDArray[np.bool_]
    is_abrupt: bool

    @property
    def num_cells(self) -> int:
        """C."""
        return int(self.wins.shape[1]).bit_length() - 1

    def shown(
        self, seat: int, tries: NDArray[np.integer], placed: NDArray[np.bool_]
    ) -> tuple[dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        """Observations and legal actions of one seat in information states of as many tries.

        Args:
          seat: that acts. tries: int [K, T], cells. placed: bool [T], True where a stone was placed, False for a find.
        Returns:
          observation fields [K, ...], and legal actions bool [K, C].
        """
        cells, rows = self.num_cells, np.arange(len(tries))
        seen = np.zeros((len(tries), 2 + 2 * cells + cells * cells), np.bool_)
        seen[:, seat] = True
        legal = np.ones((len(tries), cells), np.bool_)
        for turn, (cell, is_placed) in enumerate(zip(tries.T, placed.tolist(), strict=True)):
            seen[rows, 2 + (0 if is_placed else cells) + cell] = True
            seen[rows, 2 + (2 + turn) * cells + cell] = True
            legal[rows, cell] = False
        return {FIELD: seen}, legal


class PhantomBoard(AlternatingGame):
    """N phantom games of one board."""

    def __init__(self, *, env_id: str, num_envs: int, rules: PhantomRules) -> None:
        """Allocate the boards; `reset` starts the games."""
        cells = rules.num_cells
        spec = EnvSpec(
            env_id=env_id,
            num_seats=2,
            observations={FIELD: ArraySpec(shape=(2 + 2 * cells + cells * cells,), dtype="bool")},
            actions=ActionSpec(kind="categorical", num_actions=cells),
            teams=(0, 1),
            has_mask=True,
            max_turns=2 * cells - 1,
            seat_names=("first", "second"),
            hidden_information=True,
            return_range=(-1.0, 1.0),
            win_draw_loss=True,
        )
        super().__init__(spec, num_envs=num_envs)
        self.rules, self._cells = rules, cells
        self._seat = np.zeros(num_envs, np.int64)
        self._tried = np.zeros((num_envs, 2), np.int64)  # tries of each seat so far
        self._seen = np.zeros((num_envs, 2, 2 + 2 * cells + cells * cells), np.bool_)
        self._empty = self._seen[0].copy()
        self._empty[[0, 1], [0, 1]] = True

    def reset(self, seed: int) -> Turn:
        """Restart every game from an empty board; nothing is drawn."""
        self._restart(self._env_index)
        return self._quiet_turn()

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """Try one cell in every game.

        Args:
          actions: int [N], each in [0, C) and legal.
        Raises:
          EnvError: an action is illegal; the message lists the legal ones.
        """
        cell = self._integers(actions)
        inside, game, seat, cells = (cell >= 0) & (cell < self._cells), self._env_index, self._seat, self._cells
        self._require_legal(cell, inside & self._legal()[game, np.clip(cell, 0, cells - 1)])
        is_found = self._seen[game, 1 - seat, 2 + cell]
        self._seen[game, seat, 2 + cell + cells * is_found] = True
        self._seen[game, seat, 2 + (2 + self._tried[game, seat]) * cells + cell] = True
        self._tried[game, seat] += 1
        stones = self._stones() @ (1 << np.arange(cells))
        won = self.rules.wins[seat, stones[game, seat]]
        ended = won | (stones.sum(axis=1) == (1 << cells) - 1)
        rewards = np.zeros((self.num_envs, 2), np.float32)
        rewards[game, seat] = won
        rewards[game, 1 - seat] = -won.astype(np.float32)
        self._seat = np.where(is_found & (not self.rules.is_abrupt), seat, 1 - seat)
        self._restart(np.flatnonzero(ended))
        return self._turn(rewards, ended)

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[PhantomBoard, Turn]:
        """Copy the games at `env_indices`, hidden stones included."""
        copies = PhantomBoard(env_id=self.spec.env_id, num_envs=len(env_indices), rules=self.rules)
        copies._seat, copies._tried = self._seat[env_indices], self._tried[env_indices]
        copies._seen = self._seen[env_indices]
        return copies, copies._quiet_turn()

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The seat to move, and the tries and views of both seats, in every game."""
        return {"seat": self._seat.copy(), "tried": self._tried.copy(), "seen": self._seen.copy()}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> Turn:
        """Continue from `save`.

        Raises:
          EnvError: the arrays are of another number of games.
        """
        self._require_same_number(saved, "seat")
        self._seat, self._tried = saved["seat"].astype(np.int64), saved["tried"].astype(np.int64)
        self._seen = saved["seen"].astype(np.bool_)
        return self._quiet_turn()

    def _restart(self, games: NDArray[np.int64]) -> None:
        self._seat[games], self._tried[games], self._seen[games] = 0, 0, self._empty

    def _stones(self) -> NDArray[np.bool_]:
        """[N, 2, C], the stones of both seats."""
        return self._seen[:, :, 2 : 2 + self._cells]

    def _legal(self) -> NDArray[np.bool_]:
        own = self._seen[self._env_index, self._seat, 2 : 2 + 2 * self._cells].reshape(-1, 2, self._cells)
        return ~(own[:, 0] | own[:, 1])

    def _shown(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.generic]], NDArray[np.bool_]]:
        return self._seat.copy(), {FIELD: self._seen[self._env_index, self._seat]}, self._legal()


class PhantomTicTacToe(PhantomBoard):
    """N games of phantom tic-tac-toe: `in_row` stones in a line win, a full board is a draw."""

    def __init__(
        self, *, num_envs: int, abrupt: bool = False, rows: int = 3, cols: int = 3, in_row: int | None = None
    ) -> None:
        """Make the board.

        Args:
          abrupt: whether a turn ends with a find. rows, cols: of the board, at most 12 cells together.
          in_row: stones that win; None for the longer side.
        Raises:
          EnvError: a number does not fit.
        """
        length = in_row if in_row is not None else max(rows, cols) if _is_board(rows, cols) else 1
        _require_board("phantom_tic_tac_toe", rows, cols, abrupt)
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= max(rows, cols):
            raise EnvError(f"phantom_tic_tac_toe: in_row is {in_row!r}; it must be in [1, {max(rows, cols)}]")
        lines = [
            sum(1 << ((row + step * down) * cols + col + step * right) for step in range(length))
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
            for row in range(rows)
            for col in range(cols)
            if row + (length - 1) * down < rows and 0 <= col + (length - 1) * right < cols
        ]
        sets = np.arange(1 << (rows * cols))
        has_line = np.any([(sets & line) == line for line in lines], axis=0)
        rules = PhantomRules(wins=np.stack([has_line, has_line]), is_abrupt=abrupt)
        super().__init__(env_id="phantom_tic_tac_toe", num_envs=num_envs, rules=rules)


class DarkHex(PhantomBoard):
    """N games of dark hex: a chain wins that joins top and bottom (first seat) or left and right (second seat)."""

    def __init__(self, *, num_envs: int, abrupt: bool = False, rows: int = 3, cols: int = 3) -> None:
        """Make the board.

        Args:
          abrupt: whether a turn ends with a find. rows, cols: of the board, at most 12 cells together.
        Raises:
          EnvError: a number does not fit.
        """
        _require_board("dark_hex", rows, cols, abrupt)
        board = np.arange(rows * cols).reshape(rows, cols)
        wins = np.stack([_joins(board, board[0], board[-1]), _joins(board, board[:, 0], board[:, -1])])
        super().__init__(env_id="dark_hex", num_envs=num_envs, rules=PhantomRules(wins=wins, is_abrupt=abrupt))


def _is_board(rows: object, cols: object) -> bool:
    is_whole = all(isinstance(side, int) and not isinstance(side, bool) for side in (rows, cols))
    return is_whole and rows >= 1 and cols >= 1 and rows * cols <= MAX_CELLS  # type: ignore[operator]


def _require_board(env_id: str, rows: object, cols: object, abrupt: object) -> None:
    if not _is_board(rows, cols):
        raise EnvError(
            f"{env_id}: rows is {rows!r} and cols {cols!r}; give whole numbers with at most {MAX_CELLS} cells"
        )
    if not isinstance(abrupt, bool):
        raise EnvError(f"{env_id}: abrupt is {abrupt!r}; it must be true or false")


def _joins(board: NDArray[np.int64], start: NDArray[np.int64], goal: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool [2 ** C], whether a set of cells joins two edges of a hexagonal board [rows, cols]."""
    sets = np.arange(1 << board.size)
    reached = sets & int((1 << start).sum())
    for _ in range(board.size):
        for cell, (row, col) in enumerate(np.ndindex(*board.shape)):
            places = [(row + down, col + right) for down, right in HEX_STEPS]
            near = sum(
                1 << int(board[at]) for at in places if 0 <= at[0] < board.shape[0] and 0 <= at[1] < board.shape[1]
            )
            reached = reached | np.where((reached & near) != 0, sets & (1 << cell), 0)
    joined: NDArray[np.bool_] = (reached & int((1 << goal).sum())) != 0
    return joined
