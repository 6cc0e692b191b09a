"""Greedy games of a peer's policy between its updates, by a clock that stands still meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

GAMES = 20
"""Of one judgement, as of our own learners in `q_learning`."""
EVERY_S = 5.0
"""Processor seconds between two judgements."""


class JudgedGames:
    """Judges a policy after every few processor seconds of its training.

    Args:
      env_id: of gymnasium. core_s: most processor seconds of training. enough: score that ends it before.
    Attributes:
      used_s: processor seconds of training, without judgements. score: mean return of the newest judgement.
    """

    def __init__(self, env_id: str, *, core_s: float, enough: float | None = None) -> None:
        self.used_s, self.score = 0.0, -np.inf
        self._envs = [gymnasium.make(env_id) for _ in range(GAMES)]
        self._core_s, self._enough = core_s, enough
        self._judged_at, self._started = 0.0, time.process_time()

    @property
    def reached_s(self) -> float | None:
        """Processor seconds until the score was enough; None where it was not."""
        return self.used_s if self._enough is not None and self.score >= self._enough else None

    def is_over(self, act: Callable[[Any], Any]) -> bool:
        """Judge where it is time; True at the end. act: greedy actions [G] of observations [G, ...]."""
        now = time.process_time()
        self.used_s, self._started = self.used_s + now - self._started, now
        is_last = self.used_s >= self._core_s
        if is_last or self.used_s - self._judged_at >= EVERY_S:
            self.score, self._judged_at = self._mean_return(act), self.used_s
            print(f"{self._envs[0].spec.id}: {self.score:.6g} after {self.used_s:.3g} core-seconds", flush=True)
        self._started = time.process_time()
        return is_last or self.reached_s is not None

    def _mean_return(self, act: Callable[[Any], Any]) -> float:
        seen = np.stack([env.reset(seed=number)[0] for number, env in enumerate(self._envs)])
        plays, total = np.ones(GAMES, bool), 0.0
        while plays.any():
            actions = act(seen)
            for game in np.flatnonzero(plays):
                seen[game], reward, terminated, truncated, _ = self._envs[game].step(actions[game])
                total += float(reward)
                plays[game] = not (terminated or truncated)
        return total / GAMES
