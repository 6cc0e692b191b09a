"""Plays a game in a terminal: lines in, text out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from league.see.games.session import GameSession, IllegalMove
from league.see.games.session_view import Hint, SessionView

HELP = "Type a move (its number or name), or: hint, back, moves, help, quit."
MAX_LISTED = 24
MAX_THOUGHTS = 6


def play_in_terminal(
    session: GameSession, ask: Callable[[str], str], out: TextIO, *, evaluation: bool, hints: bool
) -> bool:
    """Play until the game ends or the person leaves.

    Args:
      ask: shows a prompt and returns a line; EOFError where there is none.
      evaluation: whether values and probabilities of the policies are shown. hints: of the person's position too.
    Returns:
      True if the game was played to its end.
    """
    seen = 0
    out.write(f"{HELP}\n")
    while True:
        view = session.view(evaluation=True)
        _tell(view, out, since=seen, evaluation=evaluation)
        seen = view.step
        if not view.options:
            out.write(f"{view.outcome}\n")
            return True
        if hints:
            _tell_hint(view.hint, out)
        while True:
            try:
                line = ask(f"{view.seat_names[view.seat]}> ").strip()
            except EOFError:
                return False
            if line == "quit":
                return False
            if _obey(line, session, view, out):
                seen = min(seen, session.num_steps)
                break


def _obey(line: str, session: GameSession, view: SessionView, out: TextIO) -> bool:
    """Do as a line says; True if the game has changed."""
    if line in ("", "help"):
        listed = ", ".join(f"{option.action}: {option.name}" for option in view.options[:MAX_LISTED])
        more = "" if len(view.options) <= MAX_LISTED else f" and {len(view.options) - MAX_LISTED} more"
        out.write(f"{HELP}\n{listed}{more}\n")
        return False
    if line == "hint":
        _tell_hint(view.hint, out)
        return False
    if line == "moves":
        for number, moves in enumerate(view.moves, start=1):
            out.write(f"{number}: {', '.join(f'{view.seat_names[move.seat]} {move.action}' for move in moves)}\n")
        return False
    try:
        if line == "back":
            session.take_back()
        else:
            session.choose(_action_of(line, view))
    except IllegalMove as error:
        out.write(f"{error}\n")
        return False
    return True


def _action_of(line: str, view: SessionView) -> int:
    """The action that a line names.

    Raises:
      IllegalMove: it names none.
    """
    named = [option.action for option in view.options if option.name == line]
    ends = [option.action for option in view.options if option.name.split()[-1:] == [line]]
    numbers = [option.action for option in view.options if str(option.action) == line]
    # A word that ends one name, such as the 4 of "column 4", is how people say it; else the number of the action.
    for found in (named, ends, numbers):
        if len(found) == 1:
            return found[0]
    raise IllegalMove(f"{line!r} is no move: type help to see them.")


def _tell(view: SessionView, out: TextIO, *, since: int, evaluation: bool) -> None:
    out.write("\n")
    for moves in view.moves[since:]:
        for move in moves:
            who = "you" if move.seat == view.seat else view.seats[move.seat].name
            value = f"  value {move.value:+.3f}" if evaluation and move.value is not None else ""
            out.write(f"{view.seat_names[move.seat]} ({who}): {move.action}{value}\n")
            if evaluation and move.probs:
                chances = "  ".join(f"{name} {chance:.0%}" for name, chance in move.probs[:MAX_THOUGHTS])
                out.write(f"  {chances}\n")
    out.write(f"{view.scene.text}\n")


def _tell_hint(hint: Hint | None, out: TextIO) -> None:
    if hint is None:
        out.write("This policy says nothing about your position.\n")
        return
    value = "" if hint.value is None else f"value {hint.value:+.3f}; "
    chances = "  ".join(f"{thought.name} {thought.chance:.0%}" for thought in hint.actions[:MAX_THOUGHTS])
    out.write(f"hint: {value}{chances}\n")
