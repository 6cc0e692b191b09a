"""Renderer of pursuit: the board with its posts and its hill, the seats on it, and who has earned more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.games.pursuit import MOVES, NOBODY, Pursuit
from league.envs.protocol import EnvSpec
from league.envs.rendering.drawing import FAINT, SEAT_COLOURS, Circle, Drawing, Label, Rect, Shape
from league.envs.rendering.renderer import Actions, Moment, Scene, seat_name

CELL, TOP = 56.0, 28.0
HILL_FILL, POST_FILL = "#e3eedc", "#eef1f4"
TEAM_COLOURS = (SEAT_COLOURS[0], SEAT_COLOURS[2])
TEAM_WORDS = {0: "left", 1: "right", NOBODY: "nobody"}


@dataclass(frozen=True, eq=False)
class Place:
    """A game in progress.

    Fields:
      step, steps: over so far, and of a game.
      size: rows and columns.
      posts, hills: int64 [P] and [9], their cells.
      cells: int64 [2 S] where the seats stand; holders: int64 [P] of the posts; both None once the game has ended.
      earned: of the first team less the second, so far.
    """

    step: int
    steps: int
    size: tuple[int, int]
    posts: NDArray[np.int64]
    hills: NDArray[np.int64]
    cells: NDArray[np.int64] | None
    holders: NDArray[np.int64] | None
    earned: float = 0.0


class PursuitRenderer:
    """Draws the board from above, the first team's side on the left."""

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec

    def begin(self, moment: Moment) -> Place:
        """See `Renderer`."""
        return self._place(moment, earned=0.0)

    def after(self, state: Place, actions: Actions, moment: Moment) -> Place:
        """See `Renderer`; of the last step only what it paid is known, the board is set up again by then."""
        del actions
        earned = state.earned + float(moment.turn.rewards[moment.game, 0])
        if not moment.ended:
            return self._place(moment, earned=earned)
        return Place(state.steps, state.steps, state.size, state.posts, state.hills, None, None, earned)

    def scene(self, state: Place, *, seat: int | None = None) -> Scene:
        """See `Renderer`; every seat sees everything."""
        del seat
        lines = [f"step {state.step} of {state.steps}", f"left {state.earned:+.3f}, right {-state.earned:+.3f}"]
        if state.holders is not None:
            lines.append("posts: " + ", ".join(TEAM_WORDS[int(holder)] for holder in state.holders))
        rows, columns = state.size
        grid = [["." for _ in range(columns)] for _ in range(rows)]
        for cells, mark in ((state.posts, "+"), (state.hills, "^")):
            for cell in cells.tolist():
                grid[cell // columns][cell % columns] = mark
        for cell, names in self._seats(state).items():
            grid[cell // columns][cell % columns] = "".join(names)
        width = max(len(text) for row in grid for text in row)
        board = "\n".join(" ".join(text.ljust(width) for text in row).rstrip() for row in grid)
        return Scene("\n".join([*lines, board]), self._drawing(state, lines))

    def action_name(self, state: Place, seat: int, action: Any) -> str:
        """See `Renderer`."""
        del state, seat
        return MOVES[int(action)]

    def _place(self, moment: Moment, *, earned: float) -> Place:
        env = moment.env
        assert isinstance(env, Pursuit)
        cells, holders = env.cells[moment.game].copy(), env.holders[moment.game].copy()
        board = env.board
        size = (board.height, board.width)
        return Place(env.step_number, env.rules.steps, size, board.posts, board.hills, cells, holders, earned)

    def _seats(self, state: Place) -> dict[int, list[str]]:
        """Cell -> the seats on it: digits for the first team, letters for the second."""
        found: dict[int, list[str]] = {}
        half = self._spec.num_seats // 2
        for seat, cell in enumerate([] if state.cells is None else state.cells.tolist()):
            found.setdefault(cell, []).append(str(seat) if seat < half else chr(ord("a") + seat - half))
        return found

    def _drawing(self, state: Place, lines: list[str]) -> Drawing:
        rows, columns = state.size
        left = max(0.0, (0.62 * 14 * max(map(len, lines)) + 16 - columns * CELL) / 2)
        shapes: list[Shape] = [Label(8, TOP / 2 + 20 * row, line, 14, centred=False) for row, line in enumerate(lines)]
        top = TOP + 20.0 * len(lines)
        for cell in range(rows * columns):
            fill = HILL_FILL if cell in state.hills else POST_FILL if cell in state.posts else "#ffffff"
            x, y = left + cell % columns * CELL, top + cell // columns * CELL
            shapes.append(Rect(x, y, CELL, CELL, fill, stroke="#d0d7de"))
        for post, cell in enumerate(state.posts.tolist()):
            holder = NOBODY if state.holders is None else int(state.holders[post])
            stroke = FAINT if holder == NOBODY else TEAM_COLOURS[holder]
            x, y = left + cell % columns * CELL, top + cell // columns * CELL
            shapes.append(Rect(x + 3, y + 3, CELL - 6, CELL - 6, "none", stroke=stroke, stroke_width=3, radius=6))
        half = self._spec.num_seats // 2
        for seat, cell in enumerate([] if state.cells is None else state.cells.tolist()):
            team, number = divmod(seat, half)
            spread = (number + 0.5) / half
            x, y = left + (cell % columns + spread) * CELL, top + (cell // columns + (0.3, 0.7)[team]) * CELL
            shapes.append(Circle(x, y, 8, TEAM_COLOURS[team]))
            shapes.append(Label(x, y, seat_name(self._spec, seat).rpartition("_")[2], 11, "#ffffff"))
        return Drawing(2 * left + columns * CELL, top + rows * CELL + 8, tuple(shapes))
