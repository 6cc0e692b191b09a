"""One recorded game as a record for players in a browser: its states as SVG and text, its moves with their thoughts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from league.envs.registry import spec_of
from league.envs.rendering.renderer import seat_name
from league.envs.text.number_text import number_text
from league.judge.recording.replay import Replay, SeatHolder
from league.see.games.follower import SeatMove
from league.see.games.playback import Frame, frames_of


class FrameView(msgspec.Struct, frozen=True):
    """One state. svg, text: its two forms. moves: that led to it."""

    svg: str
    text: str
    moves: tuple[SeatMove, ...]


class GameView(msgspec.Struct, frozen=True):
    """One game.

    Fields:
      title: who played which game.
      seat_names: [S] in the game's own terms. seats: [S] who held them.
      outcome: one sentence. returns: [S] at the end, None where the game was given up.
      tags: of the replay.
    """

    title: str
    env: str
    seat_names: tuple[str, ...]
    seats: tuple[SeatHolder, ...]
    outcome: str
    returns: tuple[float, ...] | None
    frames: tuple[FrameView, ...]
    tags: dict[str, str]


def game_view(replay: Replay, game: int = 0, *, seat: int | None = None) -> GameView:
    """One game of a replay, verified.

    Args:
      seat: as of `frames_of`.
    Raises:
      As `frames_of`.
    """
    frames = frames_of(replay, game, seat=seat)
    names = seat_names_of(replay)
    title = title_of(replay)
    return GameView(
        title,
        replay.env.id,
        names,
        replay.seats,
        outcome_text(replay, game, names),
        None if replay.games[game].aborted else tuple(map(float, replay.games[game].returns)),
        tuple(FrameView(frame.svg(title), frame.scene.text, frame.moves) for frame in frames),
        replay.tags,
    )


def title_of(replay: Replay) -> str:
    """The game, without the folder of its file, and who played it."""
    where, colon, name = replay.env.id.rpartition(":")
    game = f"{Path(where).name}{colon}{name}" if where.endswith(".py") else replay.env.id
    return f"{game}: {' - '.join(dict.fromkeys(holder.name for holder in replay.seats))}"


def seat_names_of(replay: Replay) -> tuple[str, ...]:
    """[S] the names of the seats, in the game's own terms."""
    spec = spec_of(replay.env.config())
    return tuple(seat_name(spec, seat) for seat in range(spec.num_seats))


def outcome_text(replay: Replay, game: int, names: Sequence[str]) -> str:
    """The end of a game in one sentence."""
    outcome = replay.games[game]
    if outcome.aborted:
        return "The game was given up."
    returns = ", ".join(
        f"{name} ({holder.name}) {number_text(value, sign=True)}"
        for name, holder, value in zip(names, replay.seats, outcome.returns, strict=True)
    )
    steps = outcome.steps - outcome.start
    end = "Cut off" if outcome.truncated else "Ended"
    return f"{end} after {steps} {'step' if steps == 1 else 'steps'}: {returns}."


def lines_of(frame: Frame, names: Sequence[str], seats: Sequence[SeatHolder]) -> list[str]:
    """A state for a terminal: the moves that led to it with their thoughts, then its text."""
    said = []
    for move in frame.moves:
        value = "" if move.value is None else f"  value {move.value:+.3f}"
        said.append(f"{names[move.seat]} ({seats[move.seat].name}): {move.action}{value}")
        if move.probs:
            said.append("  " + "  ".join(f"{name} {chance:.0%}" for name, chance in move.probs[:6]))
    return [*said, *frame.scene.text.splitlines()]
