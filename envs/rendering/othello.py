"""Renderer of Othello: discs on eight by eight cells, named as players do, from a1 in the top left corner."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.games.othello import BITS, PASS, legal_cells, turned
from league.envs.protocol import EnvSpec
from league.envs.rendering.boards import CELL, EMPTY, Board, board_of
from league.envs.rendering.drawing import FAINT, Circle, Drawing, Label, Rect, Shape, Target
from league.envs.rendering.renderer import Actions, Moment, Scene

MARKS = ("X", "O")
COLOURS = ("#101418", "#f6f8fa")


class OthelloRenderer:
    """Draws discs, the cells that the seat to move may take, and the count of discs."""

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec

    def begin(self, moment: Moment) -> Board:
        return board_of(moment)

    def after(self, state: Board, actions: Actions, moment: Moment) -> Board:
        ((seat, action),) = actions.items()
        to_move = EMPTY if moment.ended else 1 - seat
        if int(action) == PASS:
            return Board(state.cells, to_move)
        own, other, disc = _word(state.cells == seat), _word(state.cells == 1 - seat), BITS[[int(action)]]
        cells = state.cells.copy()
        cells[_cells(turned(own, other, disc) | disc)] = seat
        row, col = divmod(int(action), 8)
        return Board(cells, to_move, (row, col))

    def scene(self, state: Board, *, seat: int | None = None) -> Scene:
        del seat
        legal, discs = _legal(state), [int((state.cells == seat).sum()) for seat in (0, 1)]
        counts = f"{self._spec.seat_names[0]} {discs[0]}, {self._spec.seat_names[1]} {discs[1]}"
        if state.to_move == EMPTY:
            said = "draw" if discs[0] == discs[1] else f"{self._spec.seat_names[int(discs[1] > discs[0])]} wins"
        else:
            said = f"{self._spec.seat_names[state.to_move]} to move"
            said += "" if legal.any() else ", must pass"
        rows = ["  a b c d e f g h"]
        for row in range(8):
            marks = [
                MARKS[state.cells[row, col]] if state.cells[row, col] != EMPTY else "+" if legal[row, col] else "."
                for col in range(8)
            ]
            rows.append(f"{row + 1} {' '.join(marks)}")
        return Scene("\n".join([*rows, f"{counts}; {said}"]), _drawing(state, legal, f"{counts}; {said}"))

    def action_name(self, state: Board, seat: int, action: Any) -> str:
        del state, seat
        row, col = divmod(int(action), 8)
        return "pass" if int(action) == PASS else f"{'abcdefgh'[col]}{row + 1}"


def _drawing(state: Board, legal: NDArray[np.bool_], said: str) -> Drawing:
    edge = 0.6 * CELL
    side = 8 * CELL
    shapes: list[Shape] = [Rect(edge, edge, side, side, "#1a7f4b")]
    for place in range(8):
        shapes.append(Label(edge + (place + 0.5) * CELL, edge / 2, "abcdefgh"[place], 14, FAINT))
        shapes.append(Label(edge / 2, edge + (place + 0.5) * CELL, str(place + 1), 14, FAINT))
    for row, col in np.ndindex(8, 8):
        x, y, seat = edge + (col + 0.5) * CELL, edge + (row + 0.5) * CELL, int(state.cells[row, col])
        shapes.append(Rect(x - CELL / 2, y - CELL / 2, CELL, CELL, "#1a7f4b", stroke="#0f5132"))
        if seat != EMPTY:
            shapes.append(Circle(x, y, 0.4 * CELL, COLOURS[seat], stroke="#0f5132"))
        elif legal[row, col]:
            shapes.append(Circle(x, y, 0.1 * CELL, "#9fd8b4"))
        if (row, col) == state.last:
            shapes.append(Circle(x, y, 0.12 * CELL, "#c8102e"))
    height = edge + side + 2.2 * edge
    shapes.append(Label(edge + side / 2, edge + side + 0.7 * edge, said, 15))
    shapes.append(Rect(edge + side - 2 * CELL, edge + side + 1.2 * edge, 2 * CELL, 0.9 * edge, "#eef1f4", radius=4))
    shapes.append(Label(edge + side - CELL, edge + side + 1.65 * edge, "pass", 13, FAINT))
    targets = [Target(8 * row + col, edge + col * CELL, edge + row * CELL, CELL, CELL) for row, col in np.ndindex(8, 8)]
    targets.append(Target(PASS, edge + side - 2 * CELL, edge + side + 1.2 * edge, 2 * CELL, 0.9 * edge))
    return Drawing(side + 1.5 * edge, height, tuple(shapes), tuple(targets))


def _legal(state: Board) -> NDArray[np.bool_]:
    """bool [8, 8], the cells that the seat to move may take; none when the game is over."""
    if state.to_move == EMPTY:
        return np.zeros((8, 8), np.bool_)
    own, other = _word(state.cells == state.to_move), _word(state.cells == 1 - state.to_move)
    return _cells(legal_cells(own, other))


def _word(cells: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """uint64 [1] of cells [8, 8], the lowest bit first."""
    return np.packbits(cells.ravel(), bitorder="little").view("<u8").astype(np.uint64)


def _cells(word: NDArray[np.uint64]) -> NDArray[np.bool_]:
    octets = np.ascontiguousarray(word, "<u8").view(np.uint8)
    return np.unpackbits(octets, bitorder="little").astype(np.bool_).reshape(8, 8)
