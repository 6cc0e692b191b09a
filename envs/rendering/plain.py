"""Renderer of any other game: its own frames or text where it has them, else the steps and actions so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec
from league.envs.rendering.drawing import Drawing, Pixels, text_drawing
from league.envs.rendering.renderer import Actions, Moment, Scene, plain_action, seat_name

MAX_VALUES = 16
"""Largest observation field whose numbers are shown."""
WIDEST = 480.0


@runtime_checkable
class Described(Protocol):
    """An env that describes its games in text."""

    def describe(self, game: int, *, seat: int | None, ended: bool) -> str:
        """A game as text.

        Args:
          seat: in whose place; None shows everything.
          ended: the last state of the episode that ended in the last step, instead of the present state.
        """
        ...

    def action_text(self, game: int, seat: int, action: int) -> str:
        """An action that a seat may take now, in the game's own words."""
        ...


@runtime_checkable
class Named(Protocol):
    """An env whose games may name the actions of their seats."""

    def action_names(self, seat: int) -> Sequence[str]:
        """The names of a seat's numbered actions, from 0 on; empty where they have none."""
        ...


@runtime_checkable
class Framed(Protocol):
    """An env that draws its games itself."""

    def frame(self, game: int, *, ended: bool) -> NDArray[np.uint8] | str | None:
        """An image, uint8 [H, W, 3], or text; None where the game draws nothing. ended: as in `Described`."""
        ...


@dataclass(frozen=True, eq=False)
class Course:
    """A game in progress.

    Fields:
      steps: taken so far.
      texts: of the present state: for all, then for each seat.
      pixels: the game's own image, uint8 [H, W, 3]; None for none.
      names: seat -> action -> its name, for the actions that may be taken now.
      over: the game has ended.
    """

    steps: int
    texts: tuple[str, ...]
    pixels: NDArray[np.uint8] | None
    names: dict[int, dict[int, str]]
    last: str = ""
    over: bool = False


class PlainRenderer:
    """Shows what an env tells of its games; nothing is known of their rules."""

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec

    def begin(self, moment: Moment) -> Course:
        return self._course(moment, steps=0, last="")

    def after(self, state: Course, actions: Actions, moment: Moment) -> Course:
        said = ", ".join(
            f"{seat_name(self._spec, seat)}: {self.action_name(state, seat, action)}"
            for seat, action in sorted(actions.items())
        )
        return self._course(moment, steps=state.steps + 1, last=said)

    def scene(self, state: Course, *, seat: int | None = None) -> Scene:
        said = [f"step {state.steps}" + (", ended" if state.over else ""), *([state.last] if state.last else [])]
        shown = state.texts[0 if seat is None else 1 + seat]
        text = "\n".join([*said, *([shown] if shown else [])])
        if state.pixels is None:
            return Scene(text, text_drawing(text))
        height, width, _ = state.pixels.shape
        scale = WIDEST / max(height, width)
        image = Pixels(0, 0, width * scale, height * scale, state.pixels)
        return Scene(text, Drawing(width * scale, height * scale, (image,)))

    def action_name(self, state: Course, seat: int, action: Any) -> str:
        known = state.names.get(seat, {})
        return known.get(int(action), str(action)) if known else plain_action(action)

    def _course(self, moment: Moment, *, steps: int, last: str) -> Course:
        pixels, own = self._frame(moment)
        seats = range(self._spec.num_seats)
        if isinstance(moment.env, Described):
            env = moment.env
            texts = [env.describe(moment.game, seat=seat, ended=moment.ended) for seat in (None, *seats)]
        else:
            # Without words of its own a game is its observations, of which a seat may see its own alone.
            by_seat = [own if own is not None else self._observed(moment, seat) for seat in seats]
            texts = ["\n".join(dict.fromkeys(text for text in by_seat if text)), *by_seat]
        return Course(steps, tuple(texts), pixels, self._names(moment), last, moment.ended)

    def _frame(self, moment: Moment) -> tuple[NDArray[np.uint8] | None, str | None]:
        frame = moment.env.frame(moment.game, ended=moment.ended) if isinstance(moment.env, Framed) else None
        if isinstance(frame, str):
            return None, frame
        return frame, None

    def _names(self, moment: Moment) -> dict[int, dict[int, str]]:
        turn, names = moment.turn, dict[int, dict[int, str]]()
        if isinstance(moment.env, Named):
            seats = {seat: moment.env.action_names(seat) for seat in range(self._spec.num_seats)}
            return {seat: dict(enumerate(own)) for seat, own in seats.items() if own}
        if moment.ended or not isinstance(moment.env, Described) or turn.action_mask is None:
            return names
        for slot in np.flatnonzero(turn.env_index == moment.game).tolist():
            seat, legal = int(turn.seat[slot]), np.flatnonzero(turn.action_mask[slot]).tolist()
            names[seat] = {action: moment.env.action_text(moment.game, seat, action) for action in legal}
        return names

    def _observed(self, moment: Moment, seat: int) -> str:
        """The small fields of what a seat observes now; empty where it does not act."""
        turn = moment.turn
        slots = np.flatnonzero((turn.env_index == moment.game) & (turn.seat == seat))
        if moment.ended or not slots.size:
            return ""
        shown = []
        for name, field in turn.obs.items():
            if name not in self._spec.value_fields and field[slots[0]].size <= MAX_VALUES:
                numbers = " ".join(f"{float(value):g}" for value in field[slots[0]].ravel())
                shown.append(f"{name} {numbers}")
        return f"{seat_name(self._spec, seat)}: {'; '.join(shown)}" if shown else ""
