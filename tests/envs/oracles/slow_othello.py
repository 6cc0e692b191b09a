"""Othello in lists and loops, straight from the rules."""

from __future__ import annotations

PASS = 64
AROUND = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]


class SlowOthello:
    """One game; cells hold None or the seat (0, 1) whose disc lies there."""

    def __init__(self) -> None:
        self.cells: list[list[int | None]] = [[None] * 8 for _ in range(8)]
        self.cells[3][3] = self.cells[4][4] = 1
        self.cells[3][4] = self.cells[4][3] = 0
        self.seat = 0

    def turned(self, row: int, col: int, seat: int) -> list[tuple[int, int]]:
        """The other seat's discs that a disc of `seat` on this cell turns over."""
        found = []
        for down, right in AROUND:
            line, r, c = [], row + down, col + right
            while 0 <= r < 8 and 0 <= c < 8 and self.cells[r][c] == 1 - seat:
                line.append((r, c))
                r, c = r + down, c + right
            if 0 <= r < 8 and 0 <= c < 8 and self.cells[r][c] == seat:
                found += line
        return found

    def cells_for(self, seat: int) -> list[int]:
        return [
            8 * r + c for r in range(8) for c in range(8) if self.cells[r][c] is None and self.turned(r, c, seat)
        ]  # fmt: skip

    def legal(self) -> list[int]:
        return self.cells_for(self.seat) or [PASS]

    def play(self, action: int) -> list[float] | None:
        """The returns of both seats if the game ends."""
        if action != PASS:
            row, col = divmod(action, 8)
            for r, c in [*self.turned(row, col, self.seat), (row, col)]:
                self.cells[r][c] = self.seat
        self.seat = 1 - self.seat
        if self.cells_for(0) or self.cells_for(1):
            return None
        discs = [sum(row.count(seat) for row in self.cells) for seat in (0, 1)]
        won = float((discs[0] > discs[1]) - (discs[0] < discs[1]))
        return [won, -won]

    def planes(self) -> list[list[list[bool]]]:
        return [[[cell == seat for cell in row] for row in self.cells] for seat in (self.seat, 1 - self.seat)]
