"""Connect Four and tic-tac-toe as lists and loops, straight from the rules."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SlowBoard:
    """One game; cells hold None or the seat (0, 1) whose stone lies there, row 0 is the top."""

    rows: int
    cols: int
    in_row: int
    drops: bool  # an action is a column and the stone falls; else an action is a cell
    cells: list[list[int | None]] = field(default_factory=list)
    seat: int = 0

    def __post_init__(self) -> None:
        self.cells = [[None] * self.cols for _ in range(self.rows)]

    def legal(self) -> list[int]:
        if self.drops:
            return [c for c in range(self.cols) if self.cells[0][c] is None]
        return [r * self.cols + c for r in range(self.rows) for c in range(self.cols) if self.cells[r][c] is None]

    def place(self, action: int) -> str:
        """Play for the seat to move; returns "win", "draw" or "on"."""
        if self.drops:
            row, col = max(r for r in range(self.rows) if self.cells[r][action] is None), action
        else:
            row, col = divmod(action, self.cols)
        self.cells[row][col] = self.seat
        won = any(self._line(r, c, dr, dc) for r in range(self.rows) for c in range(self.cols) for dr, dc in DIRECTIONS)
        self.seat = 1 - self.seat
        return "win" if won else "on" if self.legal() else "draw"

    def _line(self, row: int, col: int, down: int, right: int) -> bool:
        places = [(row + i * down, col + i * right) for i in range(self.in_row)]
        return all(0 <= r < self.rows and 0 <= c < self.cols and self.cells[r][c] == self.seat for r, c in places)

    def planes(self) -> list[list[list[bool]]]:
        """[2][rows][cols], the stones of the seat to move, then the other's."""
        return [[[cell == seat for cell in row] for row in self.cells] for seat in (self.seat, 1 - self.seat)]

    def winning_moves(self, seat: int) -> list[int]:
        """What would win at once for `seat`, were it to move."""
        moves = []
        for action in self.legal():
            trial = SlowBoard(self.rows, self.cols, self.in_row, self.drops)
            trial.cells, trial.seat = [list(row) for row in self.cells], seat
            if trial.place(action) == "win":
                moves.append(action)
        return moves


DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def slow_connect_four() -> SlowBoard:
    return SlowBoard(rows=6, cols=7, in_row=4, drops=True)


def slow_tic_tac_toe() -> SlowBoard:
    return SlowBoard(rows=3, cols=3, in_row=3, drops=False)
