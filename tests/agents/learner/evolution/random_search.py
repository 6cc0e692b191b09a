"""A plug-in in one file: random search, an updater without gradients that keeps the best of its candidates.

Shape letters: P weights of the network, L candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.published import CandidateWeights
from league.agents.learner.step.updater import UpdateInputs, UpdateResult
from league.agents.restart_state import EMA, TARGET, TEACHER, WEIGHTS, Arrays, weights_of_size
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.weights import Weights


@dataclass(frozen=True)
class RandomSearchConfig:
    """Options. evolves: says that no gradient is computed. sigma: of the steps from the best to a candidate."""

    evolves: bool = True
    candidates: int = 8
    sigma: float = 0.1

    def problems(self) -> list[str]:
        """Every invalid option."""
        return [] if self.candidates >= 2 else [f"candidates: {self.candidates} must be at least 2"]


class RandomSearch:
    """Keeps the candidate that earned most; the first of them is the best so far. Source: Rastrigin 1963."""

    needs_fresh = True

    def __init__(
        self, values: NDArray[np.float32], config: LearnerConfig, *, seed: int, options: RandomSearchConfig
    ) -> None:
        del config
        self._options, self._rng = options, np.random.default_rng(seed)
        self._version, self.late_episodes = 0, 0
        self._search_around(values)

    def update(self, blocks: Iterable[SeatEpisodes], inputs: UpdateInputs, *, ahead: object = None) -> UpdateResult:
        """A step once every candidate has played."""
        del ahead
        if inputs.oldest_version != self._version:
            self._version = inputs.oldest_version
            self._forget()
        for block in blocks:
            is_new = block.versions == self._version
            self.late_episodes += int((~is_new).sum())
            self._decisions += int(block.decisions[is_new].sum())
            for number, earned in zip(block.perturbations[is_new], block.returns[is_new], strict=True):
                self._returns[abs(int(number)) - 1].append(float(earned))
        if not all(self._returns):
            return UpdateResult(LossStats(), 0.0, 0)
        means = [float(np.mean(returns)) for returns in self._returns]
        stats, before = LossStats(steps=float(self._decisions)), self.weights()
        self._search_around(self._candidates[int(np.argmax(means))])
        return UpdateResult(stats, float(np.linalg.norm(self.weights() - before)), 1)

    def weights(self) -> NDArray[np.float32]:
        """The best so far."""
        best: NDArray[np.float32] = self._candidates[0].copy()
        return best

    def published(self, weights: Weights) -> CandidateWeights:
        """With the candidates that hosts are to play."""
        return CandidateWeights(weights.vector, weights.layout, weights.version, self._candidates)

    def save(self) -> Arrays:
        """The best so far; candidates are drawn again."""
        empty = np.zeros(0, np.float32)
        return {WEIGHTS: self.weights(), EMA: empty, TARGET: empty, TEACHER: empty}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from there."""
        self._search_around(weights_of_size(saved, self._candidates.shape[1]))

    def close(self) -> None:
        """Nothing is held."""

    def _search_around(self, best: NDArray[np.float32]) -> None:
        steps = self._options.sigma * self._rng.standard_normal((self._options.candidates - 1, len(best)))
        self._candidates = np.concatenate([best[None], best + steps]).astype(np.float32)
        self._forget()

    def _forget(self) -> None:
        self._returns: list[list[float]] = [[] for _ in self._candidates]
        self._decisions = 0
