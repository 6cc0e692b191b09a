"""The updater of CMA-ES: candidates are given out, and their returns move a normal distribution over all weights.

Shape letters: P weights of the network, L candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from cmaes import CMA
from numpy.typing import NDArray

from league.agents.learner.algorithms.evolution_config import MAX_CMA_WEIGHTS, CMAConfig
from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.published import CandidateWeights
from league.agents.learner.step.updater import UpdateInputs, UpdateResult
from league.agents.restart_state import EMA, TARGET, TEACHER, WEIGHTS, Arrays, weights_of_size
from league.agents.unroll.device_unrolls import AnyRows
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.weights import Weights

_NUMBERS, _COVARIANCE, _PATHS, _CANDIDATES = "cma_numbers", "cma_covariance", "cma_paths", "cma_candidates"


class CMAUpdater:
    """An `Updater` for records of `SeatEpisodes`: a step as soon as every candidate has played.

    Args:
      values: float32 [P], the first weights. config: settings. seed: of the run.
      options: of `cmaes`.
    Raises:
      ValueError: the network has too many weights.
    Source: Hansen 2016, The CMA Evolution Strategy: a Tutorial; the package `cmaes`.
    """

    needs_fresh = True

    def __init__(self, values: NDArray[np.float32], config: LearnerConfig, *, seed: int, options: CMAConfig) -> None:
        del config
        require_few_weights(len(values))
        self._options = options
        self._size = options.population_of(len(values))
        self._seed = seed
        self._cma = self._made(values, options.sigma, np.eye(len(values)))
        self._candidates = self._asked()
        self._version = 0
        self._returns: list[list[float]] = [[] for _ in range(self._size)]
        self._decisions = 0
        self.late_episodes = 0

    def update(self, blocks: Iterable[AnyRows], inputs: UpdateInputs, *, ahead: object = None) -> UpdateResult:
        """As in the protocol; before every candidate has played it changes nothing, and keeps what came."""
        del ahead
        if inputs.oldest_version != self._version:
            self._begin(inputs.oldest_version)
        for block in blocks:
            assert isinstance(block, SeatEpisodes)
            self._take(block)
        if min(map(len, self._returns)) < self._options.episodes:
            return UpdateResult(LossStats(), 0.0, 0)
        means = [float(np.mean(returns)) for returns in self._returns]
        stats = LossStats(steps=float(self._decisions), policy=-float(np.mean(means)) * self._decisions)
        before = self.weights()
        candidates = self._candidates.astype(np.float64)
        self._cma.tell([(candidate, -mean) for candidate, mean in zip(candidates, means, strict=True)])
        self._candidates = self._asked()
        self._begin(self._version)
        return UpdateResult(stats, float(np.linalg.norm(self.weights() - before)), 1)

    def weights(self) -> NDArray[np.float32]:
        """As in the protocol: the mean of the distribution."""
        mean: NDArray[np.float32] = self._cma.mean.astype(np.float32)
        return mean

    def published(self, weights: Weights) -> CandidateWeights:
        """The mean with the candidates that hosts are to play."""
        return CandidateWeights(weights.vector, weights.layout, weights.version, self._candidates)

    def save(self) -> Arrays:
        cma, empty = self._cma, np.zeros(0, np.float32)
        return {
            WEIGHTS: self.weights(),
            _NUMBERS: np.array([cma._sigma, cma._g], np.float64),
            _COVARIANCE: cma._C.copy(),
            _PATHS: np.stack([cma.mean, cma._p_sigma, cma._pc]),
            _CANDIDATES: self._candidates.copy(),
            EMA: empty,
            TARGET: empty,
            TEACHER: empty,
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        values = weights_of_size(saved, self.weights().size)
        if _PATHS not in saved:
            self._cma = self._made(values, self._options.sigma, np.eye(len(values)))
            self._candidates = self._asked()
        else:
            mean, *paths = np.asarray(saved[_PATHS], np.float64)
            sigma, generation = np.asarray(saved[_NUMBERS], np.float64).tolist()
            self._cma = self._made(mean, sigma, np.asarray(saved[_COVARIANCE], np.float64))
            self._cma._p_sigma, self._cma._pc = paths
            self._cma._g = int(generation)
            self._candidates = np.array(saved[_CANDIDATES], np.float32)
        self._begin(self._version)

    def close(self) -> None:
        """Nothing is held."""

    def _made(self, mean: NDArray[np.floating], sigma: float, covariance: NDArray[np.floating]) -> CMA:
        return CMA(
            mean=np.array(mean, np.float64),
            sigma=sigma,
            cov=np.array(covariance, np.float64),
            seed=self._seed % 2**32,
            population_size=self._size,
        )

    def _asked(self) -> NDArray[np.float32]:
        return np.stack([self._cma.ask() for _ in range(self._size)]).astype(np.float32)

    def _begin(self, version: int) -> None:
        self._version = version
        self._returns, self._decisions = [[] for _ in range(self._size)], 0

    def _take(self, episodes: SeatEpisodes) -> None:
        is_new = (episodes.versions == self._version) & (np.abs(episodes.perturbations) <= self._size)
        self.late_episodes += int(np.count_nonzero(~is_new))
        self._decisions += int(episodes.decisions[is_new].sum())
        for number, earned in zip(
            episodes.perturbations[is_new].tolist(), episodes.returns[is_new].tolist(), strict=True
        ):
            self._returns[abs(number) - 1].append(earned)


def require_few_weights(num_weights: int) -> None:
    """Raise ValueError where a network is too large for CMA-ES."""
    if num_weights > MAX_CMA_WEIGHTS:
        raise ValueError(
            f"cmaes keeps a number for every pair of weights, for {MAX_CMA_WEIGHTS:,} weights at most, and the network "
            f"has {num_weights:,}; use es, or a smaller network"
        )
