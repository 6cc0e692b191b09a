"""Follows one game of an env for people: its states by the renderer, and each move in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import BatchedEnv, Turn
from league.envs.rendering.renderer import Moment, Scene
from league.envs.rendering.renderers import renderer_for
from league.judge.recording.replay import Decision

MAX_SHOWN = 12
"""Actions whose probabilities are shown, the likeliest."""


@dataclass(frozen=True)
class SeatMove:
    """A decision of a seat.

    Fields:
      action: in words.
      value: expected return that its policy saw before it, None for none.
      probs: (action in words, probability) of the likeliest actions, likeliest first.
      is_opening: drawn at random, by no policy.
    """

    seat: int
    action: str
    value: float | None = None
    probs: tuple[tuple[str, float], ...] = ()
    is_opening: bool = False


class GameFollower:
    """One game, from its reset on.

    Args:
      env, turn: just reset. game: the index of the one to follow.
    """

    def __init__(self, env: BatchedEnv, turn: Turn, *, game: int = 0) -> None:
        self._renderer = renderer_for(env.spec)
        self._game = game
        self._state: Any = self._renderer.begin(Moment(env, turn, game))
        self._remember(turn)

    @property
    def seats(self) -> tuple[int, ...]:
        """Seats that must act now, in the order of their slots."""
        return tuple(self._seats)

    def scene(self, seat: int | None = None) -> Scene:
        """The present state; seat as in `Renderer.scene`."""
        return self._renderer.scene(self._state, seat=seat)

    def action_name(self, seat: int, action: Any) -> str:
        """An action that a seat may take now, in words."""
        return self._renderer.action_name(self._state, seat, action)

    def probs(self, seat: int, decision: Decision | None) -> tuple[tuple[str, float], ...]:
        """The likeliest actions of a decision in words, likeliest first; empty where none are known."""
        if decision is None:
            return ()
        ranked = sorted(enumerate(decision.probs), key=lambda pair: -pair[1])[:MAX_SHOWN]
        return tuple((self.action_name(seat, action), chance) for action, chance in ranked if chance > 0)

    def advance(
        self,
        actions: NDArray[np.generic],
        env: BatchedEnv,
        turn: Turn,
        *,
        ended: bool,
        said: Sequence[Decision | None] = (),
    ) -> tuple[SeatMove, ...]:
        """Take one step of the env.

        Args:
          actions: [K, ...] for all slots of the turn before. turn: after it. ended: the game ended in it.
          said: [K] what the policies thought before it; empty for nothing.
        Returns:
          The moves of the game that is followed.
        """
        moves, taken = [], {}
        for slot, seat in zip(self._slots, self._seats, strict=True):
            taken[seat] = actions[slot]
            decision = said[slot] if said else None
            moves.append(
                SeatMove(
                    seat,
                    self.action_name(seat, actions[slot]),
                    None if decision is None else decision.value,
                    self.probs(seat, decision),
                )
            )
        self._state = self._renderer.after(self._state, taken, Moment(env, turn, self._game, ended))
        self._remember(turn)
        return tuple(moves)

    def _remember(self, turn: Turn) -> None:
        """Keep the slots of the game that is followed: the env may reuse the turn's arrays."""
        self._slots = np.flatnonzero(turn.env_index == self._game).tolist()
        self._seats = turn.seat[self._slots].tolist()
