"""Lengths, decisions and returns of the episodes that have ended, and of those in progress.

Shape letters: N games at once, E ended episodes, S seats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.facts.game_facts import ENOUGH_EPISODES
from league.envs.protocol import EnvSpec, Turn

UNENDED_TURNS, MAX_GUESSED_TURNS = 200, 1_000
"""Length of an episode where none has ended: the first if the spec has no bound, at most the second if it has."""


class EpisodeLog:
    """Follows N games.

    Attributes:
      own: int64 [N, S], decisions of each seat in the episode at hand.
      ended_turns: [E] lengths. truncated: of the ended episodes, how many were.
    """

    def __init__(self, spec: EnvSpec, *, num_envs: int) -> None:
        self._spec = spec
        self.ended_turns: list[int] = []
        self._decisions: list[int] = []
        self._returns: list[NDArray[np.float64]] = []
        self.truncated = 0
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._lengths = np.zeros(num_envs, np.int64)
        self.own = np.zeros((num_envs, self._spec.num_seats), np.int64)

    def __len__(self) -> int:
        return len(self.ended_turns)

    @property
    def is_short(self) -> bool:
        """True while too few episodes have ended to tell by their returns who wants the same."""
        return len(self) < ENOUGH_EPISODES

    @property
    def returns(self) -> NDArray[np.float64]:
        """float64 [E, S]."""
        return np.array(self._returns).reshape(-1, self._spec.num_seats)

    @property
    def turns(self) -> list[int] | NDArray[np.floating[Any]]:
        """Lengths of the ended episodes; where there are none, a guess at those of the present ones."""
        return self.ended_turns or self._lengths * self._guess()

    @property
    def decisions(self) -> list[int] | NDArray[np.floating[Any]]:
        """Decisions of each seat of the ended episodes, or a guess."""
        return self._decisions or self.own.reshape(-1) * self._guess()

    def decided(self, turn: Turn) -> None:
        """A turn that is answered."""
        self._lengths += 1
        self.own[turn.env_index, turn.seat] += 1

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        for game in np.flatnonzero(turn.ended):
            self.ended_turns.append(int(self._lengths[game]))
            self._decisions.extend(int(count) for count in self.own[game])
            self._returns.append(turn.returns[game].astype(np.float64))
            self.truncated += bool(turn.truncated[game])
        self._lengths[turn.ended] = 0
        self.own[turn.ended] = 0

    def _guess(self) -> float:
        """Factor from the present length of the games to a whole one, where no episode has ended."""
        bound = UNENDED_TURNS if self._spec.max_turns is None else min(self._spec.max_turns, MAX_GUESSED_TURNS)
        return max(bound / max(float(self._lengths.mean()), 1.0), 1.0)
