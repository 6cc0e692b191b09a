"""Renderers of games of placing stones on a board: Connect Four and tic-tac-toe."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.games.connect_four import COLS
from league.envs.games.tic_tac_toe import SIDE
from league.envs.protocol import EnvSpec
from league.envs.rendering.drawing import FAINT, INK, SEAT_COLOURS, Circle, Drawing, Label, Line, Rect, Shape, Target
from league.envs.rendering.renderer import Actions, Moment, Scene

CELL = 40.0
EMPTY = -1


@dataclass(frozen=True, eq=False)
class Board:
    """A position.

    Fields:
      cells: int8 [rows, cols], the seat whose stone lies there or `EMPTY`.
      to_move: seat that must act; EMPTY when the game is over.
      last: cell of the last stone, None before the first.
      line: cells of the winning line.
    """

    cells: NDArray[np.int8]
    to_move: int
    last: tuple[int, int] | None = None
    line: frozenset[tuple[int, int]] = frozenset()


def board_of(moment: Moment) -> Board:
    """The position that the planes "board" of the seat to move show."""
    slot = int(np.flatnonzero(moment.turn.env_index == moment.game)[0])
    own, other = moment.turn.obs["board"][slot]
    seat = int(moment.turn.seat[slot])
    cells = np.full(own.shape, EMPTY, np.int8)
    cells[own.astype(np.bool_)], cells[other.astype(np.bool_)] = seat, 1 - seat
    return Board(cells, seat)


def caption(board: Board, marks: tuple[str, str]) -> str:
    """A sentence about the position. marks: of the two seats."""
    if board.to_move != EMPTY:
        return f"{marks[board.to_move]} to move"
    if board.last is None or not board.line:
        return "draw"
    return f"{marks[int(board.cells[board.last])]} wins"


def _line_through(cells: NDArray[np.int8], cell: tuple[int, int], *, in_row: int) -> frozenset[tuple[int, int]]:
    """The cells of all lines of at least `in_row` equal stones through a cell; empty if there is none."""
    seat, found = cells[cell], set()
    for step in ((0, 1), (1, 0), (1, 1), (1, -1)):
        line = {cell}
        for sign in (1, -1):
            for distance in itertools.count(1):
                row, col = cell[0] + sign * distance * step[0], cell[1] + sign * distance * step[1]
                if not (0 <= row < cells.shape[0] and 0 <= col < cells.shape[1] and cells[row, col] == seat):
                    break
                line.add((row, col))
        if len(line) >= in_row:
            found |= line
    return frozenset(found)


class StoneRenderer:
    """A board of stones; a subclass says where an action puts its stone and draws the board."""

    marks = ("X", "O")
    in_row = 3

    def __init__(self, spec: EnvSpec) -> None:
        """See `Renderer`; boards of stones show all that they need."""

    def begin(self, moment: Moment) -> Board:
        return board_of(moment)

    def after(self, state: Board, actions: Actions, moment: Moment) -> Board:
        ((seat, action),) = actions.items()
        cell, cells = self._cell(state, int(action)), state.cells.copy()
        cells[cell] = seat
        line = _line_through(cells, cell, in_row=self.in_row)
        return Board(cells, EMPTY if moment.ended else 1 - seat, cell, line if moment.ended else frozenset())

    def scene(self, state: Board, *, seat: int | None = None) -> Scene:
        del seat
        head = self._header(state.cells.shape[1])
        rows = [" ".join(self._mark(state, (r, c)) for c in range(state.cells.shape[1])) for r in self._rows(state)]
        text = "\n".join([*head, *rows, caption(state, self.marks)])
        return Scene(text, self._drawing(state))

    def action_name(self, state: Board, seat: int, action: Any) -> str:
        raise NotImplementedError

    def _cell(self, state: Board, action: int) -> tuple[int, int]:
        raise NotImplementedError

    def _drawing(self, state: Board) -> Drawing:
        raise NotImplementedError

    def _header(self, cols: int) -> list[str]:
        del cols
        return []

    def _rows(self, state: Board) -> range:
        return range(state.cells.shape[0])

    def _mark(self, state: Board, cell: tuple[int, int]) -> str:
        seat = int(state.cells[cell])
        return "." if seat == EMPTY else self.marks[seat]


class ConnectFourRenderer(StoneRenderer):
    """Discs in seven columns, numbered from 1."""

    marks = ("X", "O")
    in_row = 4

    def action_name(self, state: Board, seat: int, action: Any) -> str:
        del state, seat
        return f"column {int(action) + 1}"

    def _cell(self, state: Board, action: int) -> tuple[int, int]:
        free = np.flatnonzero(state.cells[:, action] == EMPTY)
        return int(free[-1]), action

    def _header(self, cols: int) -> list[str]:
        return [" ".join(str(col + 1) for col in range(cols))]

    def _drawing(self, state: Board) -> Drawing:
        rows, cols = state.cells.shape
        shapes: list[Shape] = [Rect(0, CELL, cols * CELL, rows * CELL, "#24509c", radius=6)]
        shapes += [Label((col + 0.5) * CELL, CELL / 2, str(col + 1), 16, FAINT) for col in range(cols)]
        for row, col in np.ndindex(rows, cols):
            seat = int(state.cells[row, col])
            x, y = (col + 0.5) * CELL, (row + 1.5) * CELL
            shapes.append(Circle(x, y, 0.4 * CELL, "#f6f8fa" if seat == EMPTY else SEAT_COLOURS[seat]))
            if (row, col) in state.line or (row, col) == state.last:
                ring = "#ffffff" if (row, col) in state.line else "#101418"
                shapes.append(Circle(x, y, 0.18 * CELL, ring))
        shapes.append(Label(cols * CELL / 2, (rows + 1.5) * CELL, caption(state, ("red", "yellow")), 15))
        targets = tuple(Target(col, col * CELL, 0, CELL, (rows + 1) * CELL) for col in range(COLS))
        return Drawing(cols * CELL, (rows + 2) * CELL, tuple(shapes), targets)


class TicTacToeRenderer(StoneRenderer):
    """Crosses and noughts; cells are named by column a to c and row 1 to 3 from the top."""

    in_row = 3

    def action_name(self, state: Board, seat: int, action: Any) -> str:
        del state, seat
        row, col = divmod(int(action), SIDE)
        return f"{'abc'[col]}{row + 1}"

    def _cell(self, state: Board, action: int) -> tuple[int, int]:
        del state
        return divmod(action, SIDE)

    def _drawing(self, state: Board) -> Drawing:
        rows, cols = state.cells.shape
        side = 1.5 * CELL
        shapes: list[Shape] = []
        for row, col in np.ndindex(rows, cols):
            fill = "#d3f0da" if (row, col) in state.line else "#eef1f4" if (row, col) == state.last else "#ffffff"
            shapes.append(Rect(col * side, row * side, side, side, fill, stroke=INK, stroke_width=1.5))
            shapes += _nought_or_cross(int(state.cells[row, col]), (col + 0.5) * side, (row + 0.5) * side, 0.32 * side)
        shapes.append(Label(cols * side / 2, (rows + 0.3) * side, caption(state, self.marks), 15))
        targets = tuple(
            Target(row * SIDE + col, col * side, row * side, side, side) for row, col in np.ndindex(rows, cols)
        )
        return Drawing(cols * side, (rows + 0.6) * side, tuple(shapes), targets)


def _nought_or_cross(seat: int, x: float, y: float, half: float) -> list[Shape]:
    if seat == EMPTY:
        return []
    if seat == 1:
        return [Circle(x, y, half, "#ffffff", stroke="#1f6feb", stroke_width=6)]
    return [
        Line(x - half, y - half, x + half, y + half, SEAT_COLOURS[0], 6),
        Line(x - half, y + half, x + half, y - half, SEAT_COLOURS[0], 6),
    ]
