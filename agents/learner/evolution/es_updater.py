"""The updater of evolution strategies: mirrored pairs of episodes become one Adam step without a gradient.

Shape letters: P weights of the network, n pairs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.algorithms.evolution_config import ESConfig
from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.episode_pairs import EpisodePairs, Pairs
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.evolution.published import EvolvedWeights
from league.agents.learner.evolution.ranks import centred_ranks
from league.agents.learner.evolution.step import EvolutionState, EvolutionStep, adam_rate
from league.agents.learner.step.optimizer import ema_rate
from league.agents.learner.step.updater import UpdateInputs, UpdateResult
from league.agents.restart_state import (
    EMA,
    OPTIMIZER_NUMBER,
    OPTIMIZER_VECTOR,
    TARGET,
    TEACHER,
    WEIGHTS,
    Arrays,
    ema_in,
    weights_of_size,
)
from league.agents.unroll.device_unrolls import AnyRows
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.weights import Weights

_FIRST, _SECOND, _STEPS = f"{OPTIMIZER_VECTOR}first", f"{OPTIMIZER_VECTOR}second", f"{OPTIMIZER_NUMBER}evolution_steps"
_CAP = f"{OPTIMIZER_NUMBER}evolution_cap"

MAX_KEPT_STEPS = 8
"""Steps that are published beside the weights, for hosts that are that many versions behind."""


class ESUpdater:
    """An `Updater` for records of `SeatEpisodes`: it takes a step as soon as enough pairs are whole.

    Episodes of weights before the newest are late: they are dropped and counted, and hosts play others.

    Args:
      values: float32 [P], the first weights. config: settings. seed: of the run, from which the noise is made.
      options: of `es`.

    Attributes:
      late_episodes: dropped so far, because newer weights had come, or without their opposite.
    """

    needs_fresh = True

    def __init__(self, values: NDArray[np.float32], config: LearnerConfig, *, seed: int, options: ESConfig) -> None:
        self._options = options
        self._noise = noise_table(seed)
        self._ema_share = config.ema_share
        self._state = EvolutionState.of(values.copy())
        self._ema = values.copy()
        self._pairs = EpisodePairs()
        self._steps: deque[EvolutionStep] = deque(maxlen=MAX_KEPT_STEPS)
        self._cap = 0

    @property
    def late_episodes(self) -> int:
        """See the class."""
        return self._pairs.late + self._pairs.unpaired

    def update(self, blocks: Iterable[AnyRows], inputs: UpdateInputs, *, ahead: object = None) -> UpdateResult:
        """As in the protocol; without enough pairs it changes nothing, and keeps those that came."""
        del ahead
        self._pairs.begin(inputs.oldest_version)
        for block in blocks:
            assert isinstance(block, SeatEpisodes)
            self._pairs.add(block)
        if 2 * self._pairs.num_complete < self._options.evaluations:
            return UpdateResult(LossStats(), 0.0, 0)
        return self._step(self._pairs.take(), inputs)

    def weights(self) -> NDArray[np.float32]:
        return self._state.values.copy()

    def published(self, weights: Weights) -> EvolvedWeights:
        """The weights with what hosts need to follow the next steps by themselves."""
        moments = np.stack([self._state.first, self._state.second])
        return EvolvedWeights(weights.vector, weights.layout, weights.version, moments, tuple(self._steps), self._cap)

    def save(self) -> Arrays:
        empty = np.zeros(0, np.float32)
        state = self._state
        return {
            WEIGHTS: state.values.copy(),
            _FIRST: state.first.copy(),
            _SECOND: state.second.copy(),
            _STEPS: np.array(state.steps, np.int64),
            _CAP: np.array(self._cap, np.int64),
            EMA: self._ema.copy() if self._ema_share else empty,
            TARGET: empty,
            TEACHER: empty,
        }

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        values = weights_of_size(saved, self._state.values.size)
        self._state = EvolutionState.of(values)
        if _FIRST in saved and _SECOND in saved and _STEPS in saved:
            first, second = (np.array(saved[name], np.float32) for name in (_FIRST, _SECOND))
            self._state = EvolutionState(values, first, second, int(np.asarray(saved[_STEPS], np.int64)))
        self._cap = int(np.asarray(saved.get(_CAP, 0), np.int64))
        average = ema_in(saved)
        self._ema = values.copy() if average is None else average.copy()
        self._pairs = EpisodePairs()
        self._steps.clear()

    def close(self) -> None:
        """Nothing is held."""

    def _step(self, pairs: Pairs, inputs: UpdateInputs) -> UpdateResult:
        ranks = centred_ranks(pairs.returns)
        step = EvolutionStep(
            version=inputs.oldest_version + 1,
            rate=adam_rate(inputs.learning_rate, self._state.steps + 1),
            weight_decay=self._options.weight_decay,
            indices=pairs.indices,
            weights=(ranks[:, 0] - ranks[:, 1]) / np.float32(ranks.size),
            cap=self._cap_after(pairs),
        )
        state = self._state.after(step, self._noise)
        norm = float(np.linalg.norm(state.values - self._state.values)) / inputs.learning_rate
        steps, total = float(pairs.decisions), float(pairs.returns.mean()) * pairs.decisions
        stats = LossStats(steps=steps, policy=-total)
        if not math.isfinite(norm):
            return UpdateResult(stats, norm, 0)
        self._state = state
        self._steps.append(step)
        self._cap = step.cap
        self._ema += (state.values - self._ema) * np.float32(ema_rate(state.steps, share=self._ema_share or 1.0))
        return UpdateResult(stats, norm, 1)

    def _cap_after(self, pairs: Pairs) -> int:
        """Decisions after which the next episodes are cut; 0 for never."""
        factor = self._options.episode_cap
        return 0 if factor is None else math.ceil(factor * pairs.decisions / pairs.returns.size)
