"""All that a person may see of a game in progress, as records."""

from __future__ import annotations

from dataclasses import dataclass

from league.envs.rendering.renderer import Scene
from league.envs.text.number_text import number_text
from league.judge.recording.replay import SeatHolder
from league.see.games.follower import SeatMove


@dataclass(frozen=True)
class Option:
    """A legal action. name: in words."""

    action: int
    name: str


@dataclass(frozen=True)
class Thought:
    """An action and its probability."""

    action: int
    name: str
    chance: float


@dataclass(frozen=True)
class Hint:
    """Thoughts about the position of the person. value: expected return, None for none; actions: likeliest first."""

    value: float | None
    actions: tuple[Thought, ...]


@dataclass(frozen=True)
class SessionView:
    """A game as the person in `seat` may see it.

    Fields:
      seat_names: [S] in the game's own terms. seats: [S] who holds them.
      step: steps so far. scene: the state.
      options: legal actions, empty when the game is over.
      moves: of each step so far, with the thoughts of policies where these may be known.
      hint: the advisor's thoughts on the present position; None for none.
      returns: [S] of all seats, once the game is over.
      simultaneous: others choose at the same time, and their choice is shown after the person's.
    """

    env: str
    seat: int
    seat_names: tuple[str, ...]
    seats: tuple[SeatHolder, ...]
    step: int
    scene: Scene
    options: tuple[Option, ...]
    moves: tuple[tuple[SeatMove, ...], ...]
    hint: Hint | None
    returns: tuple[float, ...] | None
    can_take_back: bool
    simultaneous: bool

    @property
    def outcome(self) -> str:
        """The end of the game in one sentence; empty while it lasts."""
        if self.returns is None:
            return ""
        own = self.returns[self.seat]
        best_other = max((value for place, value in enumerate(self.returns) if place != self.seat), default=None)
        returned = f"your return is {number_text(own, sign=True)}"
        if best_other is None:
            return f"The game is over: {returned}."
        verdict = "You win" if own > best_other else "You lose" if own < best_other else "A draw"
        return f"{verdict}: {returned}."
