"""A game in progress as a record for a browser."""

from __future__ import annotations

import msgspec

from league.envs.rendering.drawing import Target, svg_of
from league.judge.recording.replay import SeatHolder
from league.see.games.follower import SeatMove
from league.see.games.session_view import Hint, Option, SessionView


class SessionRecord(msgspec.Struct, frozen=True):
    """As `SessionView`.

    Fields:
      id: of the game in progress.
      svg, text: the state. width, height: units of the drawing; targets: in these units, legal actions alone.
      outcome: one sentence, empty while the game lasts.
    """

    id: str
    env: str
    seat: int
    seat_names: tuple[str, ...]
    seats: tuple[SeatHolder, ...]
    step: int
    svg: str
    text: str
    width: float
    height: float
    targets: tuple[Target, ...]
    options: tuple[Option, ...]
    moves: tuple[tuple[SeatMove, ...], ...]
    hint: Hint | None
    outcome: str
    can_take_back: bool
    simultaneous: bool


def record_of(name: str, view: SessionView) -> SessionRecord:
    """The record of a view. name: of the game in progress."""
    drawing, legal = view.scene.drawing, {option.action for option in view.options}
    return SessionRecord(
        id=name,
        env=view.env,
        seat=view.seat,
        seat_names=view.seat_names,
        seats=view.seats,
        step=view.step,
        svg=svg_of(drawing, title=f"{view.env}, step {view.step}"),
        text=view.scene.text,
        width=drawing.width,
        height=drawing.height,
        targets=tuple(target for target in drawing.targets if target.action in legal),
        options=view.options,
        moves=view.moves,
        hint=view.hint,
        outcome=view.outcome,
        can_take_back=view.can_take_back,
        simultaneous=view.simultaneous,
    )
