"""The contract of a renderer: it follows one game from its start, action by action, and shows any state of it.

A state is a fold over the actions. So the last state of a game can be shown too, although its env has restarted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from league.envs.protocol import BatchedEnv, EnvSpec, Turn
from league.envs.rendering.drawing import Drawing

S = TypeVar("S")

Actions = Mapping[int, Any]
"""Seat -> the action that it took in one step."""


@dataclass(frozen=True)
class Moment:
    """One game of an env after a reset or a step.

    Fields:
      env, turn: the games and their present turn.
      game: the index of the one that is followed.
      ended: its episode ended in this step; the turn then shows the next one.
    """

    env: BatchedEnv
    turn: Turn
    game: int
    ended: bool = False


@dataclass(frozen=True)
class Scene:
    """One state of a game, for people. text: of several lines."""

    text: str
    drawing: Drawing


class Renderer(Protocol[S]):
    """Shows one kind of game."""

    def begin(self, moment: Moment) -> S:
        """The state of a game whose env has just been reset."""
        ...

    def after(self, state: S, actions: Actions, moment: Moment) -> S:
        """The state after one step of the game; `state` stays as it is."""
        ...

    def scene(self, state: S, *, seat: int | None = None) -> Scene:
        """A state as people see it. seat: in whose place, for games with hidden information; None shows everything."""
        ...

    def action_name(self, state: S, seat: int, action: Any) -> str:
        """An action of a seat in a state, in a word or two."""
        ...


def seat_name(spec: EnvSpec, seat: int) -> str:
    """The name of a seat in the env's own terms."""
    return spec.seat_names[seat] if seat < len(spec.seat_names) else f"seat {seat}"


def plain_action(action: Any) -> str:
    """An action of any kind as numbers."""
    if hasattr(action, "tolist"):
        action = action.tolist()
    if isinstance(action, list | tuple):
        return "(" + ", ".join(plain_action(part) for part in action) + ")"
    return f"{action:.3g}" if isinstance(action, float) else str(action)
