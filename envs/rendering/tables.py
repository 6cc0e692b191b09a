"""Renderers of games in which all seats choose at once and a table pays: the table itself, or a ring of choices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec
from league.envs.rendering.drawing import FAINT, INK, SEAT_COLOURS, Circle, Drawing, Label, Line, Rect, Shape, Target
from league.envs.rendering.renderer import Actions, Moment, Scene, seat_name

HANDS = ("rock", "paper", "scissors")
MAX_TABLE = 9
"""Largest number of choices whose table is drawn; more are points of a ring."""
MAX_SHOWN = 12
"""Rounds listed, the newest."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """A game in progress.

    Fields:
      payoffs: float32 [A, ..., A, S], payoff of each seat in one round.
      total: rounds of a game.
      played: the choices of all seats, per round.
    """

    payoffs: NDArray[np.float32]
    total: int
    played: tuple[tuple[int, ...], ...] = ()

    def earned(self) -> NDArray[np.float64]:
        """float64 [S], the payoffs of all rounds so far."""
        seats = self.payoffs.shape[-1]
        return sum((self.payoffs[choice].astype(np.float64) for choice in self.played), start=np.zeros(seats))


class TableRenderer:
    """Shows the rounds so far and, of two seats, the table with the last choices marked."""

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec
        self._names = HANDS if "rock_paper_scissors" in spec.env_id else None

    def begin(self, moment: Moment) -> Rounds:
        payoffs: NDArray[np.float32] = moment.env.payoffs  # type: ignore[attr-defined]
        return Rounds(payoffs, int(moment.env.rounds))  # type: ignore[attr-defined]

    def after(self, state: Rounds, actions: Actions, moment: Moment) -> Rounds:
        del moment
        chosen = tuple(int(actions[seat]) for seat in range(self._spec.num_seats))
        return Rounds(state.payoffs, state.total, (*state.played, chosen))

    def scene(self, state: Rounds, *, seat: int | None = None) -> Scene:
        """See `Renderer`; a choice is shown once all have made theirs."""
        del seat
        lines = [f"round {min(len(state.played) + 1, state.total)} of {state.total}"]
        first = max(0, len(state.played) - MAX_SHOWN)
        for number, chosen in list(enumerate(state.played, start=1))[first:]:
            said = ", ".join(f"{seat_name(self._spec, s)} {self._name(c)}" for s, c in enumerate(chosen))
            lines.append(f"{number}: {said}  ({self._numbers(state.payoffs[chosen])})")
        over = len(state.played) == state.total
        lines.append(f"{'ended' if over else 'so far'}: {self._numbers(state.earned())}")
        text = "\n".join(lines)
        if self._spec.num_seats == 2 and max(state.payoffs.shape[:2]) <= MAX_TABLE:
            return Scene(text, self._table(state, lines))
        return Scene(text, self._ring(state, lines))

    def action_name(self, state: Rounds, seat: int, action: Any) -> str:
        del state, seat
        return self._name(int(action))

    def _name(self, choice: int) -> str:
        return self._names[choice] if self._names is not None else str(choice)

    def _numbers(self, values: NDArray[Any]) -> str:
        return " ".join(f"{float(value) + 0.0:+.3g}" for value in values)

    def _table(self, state: Rounds, lines: list[str]) -> Drawing:
        rows, cols = state.payoffs.shape[:2]
        width, height, left, top = 92.0, 44.0, 110.0, 54.0
        shapes: list[Shape] = [Label(left + cols * width / 2, 14, seat_name(self._spec, 1), 14, FAINT)]
        shapes.append(Label(left / 2, top - 16, seat_name(self._spec, 0), 14, FAINT))
        last = state.played[-1] if state.played else None
        shapes += [Label(left + (c + 0.5) * width, top - 16, self._name(c), 14) for c in range(cols)]
        for row in range(rows):
            shapes.append(Label(left / 2, top + (row + 0.5) * height, self._name(row), 14))
            for col in range(cols):
                x, y = left + col * width, top + row * height
                fill = "#ffe9a8" if last == (row, col) else "#ffffff"
                shapes.append(Rect(x, y, width, height, fill, stroke="#d0d7de"))
                shapes.append(Label(x + width / 2, y + height / 2, self._numbers(state.payoffs[row, col]), 13))
        return _with_lines(shapes, lines, width=left + cols * width, top=top + rows * height + 18)

    def _ring(self, state: Rounds, lines: list[str]) -> Drawing:
        """Choices on a circle, those of the last round marked in the colours of their seats."""
        count, centre, radius = state.payoffs.shape[0], 170.0, 140.0
        places = [
            (centre + radius * math.sin(2 * math.pi * c / count), centre - radius * math.cos(2 * math.pi * c / count))
            for c in range(count)
        ]
        shapes: list[Shape] = [Circle(centre, centre, radius, "#ffffff", stroke="#d0d7de")]
        size = max(2.0, min(14.0, 2.2 * radius / count))
        shapes += [Circle(x, y, size, "#eef1f4", stroke=FAINT) for x, y in places]
        if count <= 40:
            shapes += [Label(x, y, self._name(c)[:8], 11) for c, (x, y) in enumerate(places)]
        targets = tuple(Target(c, x - size, y - size, 2 * size, 2 * size) for c, (x, y) in enumerate(places))
        for seat, choice in enumerate(state.played[-1] if state.played else ()):
            x, y = places[choice]
            colour, out = SEAT_COLOURS[seat % len(SEAT_COLOURS)], size + 4 + 5 * seat
            shapes.append(Circle(x, y, out - 2, "none", stroke=colour, stroke_width=3))
            shapes.append(Line(centre, centre, x, y, colour, 1.5))
            shapes.append(Label(centre, centre + 16 * (seat - 1), seat_name(self._spec, seat), 12, INK))
        return _with_lines(shapes, lines, width=2 * centre, top=2 * centre + 6, targets=targets)


def _with_lines(
    shapes: list[Shape], lines: list[str], *, width: float, top: float, targets: tuple[Target, ...] = ()
) -> Drawing:
    """The shapes with lines of text below them."""
    size = min(14.0, 2 * width / (0.62 * max(map(len, lines)))) if lines else 14.0
    width = max(width, 0.62 * size * max(map(len, lines)) + 16)
    labels = [Label(8, top + 20 * row, line, size, centred=False) for row, line in enumerate(lines)]
    return Drawing(width, top + 20 * len(lines), (*shapes, *labels), targets)
