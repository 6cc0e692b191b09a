"""A matchmaker that meets old snapshots more often than new ones."""

from dataclasses import dataclass

import numpy as np

from league.core.matchmaking.roles import MatchmakingView


@dataclass(frozen=True)
class OldestFirst:
    """Some games are self-play, the others against past snapshots, the oldest most often. The fields are its options.

    Fields:
      self_play: fraction of the games against itself.
      decay: weight of a snapshot over that of the one before it.
    """

    self_play: float = 0.5
    decay: float = 0.5

    def opponents(self, view: MatchmakingView, rng: np.random.Generator) -> np.ndarray:
        """float64 [P], the probability of each of the P policies of the league; they sum to 1."""
        past = view.population.snapshots()  # numbers of the frozen policies, oldest first
        result = np.zeros(len(view.population))
        result[view.home] = self.self_play if len(past) else 1.0
        if len(past):
            weights = self.decay ** np.arange(len(past))
            result[past] += (1.0 - self.self_play) * weights / weights.sum()
        return result

    def gate_opponents(self, view: MatchmakingView) -> np.ndarray:
        """int64 [C], the policies that the gate demands to be beaten: every snapshot."""
        return view.population.snapshots()
