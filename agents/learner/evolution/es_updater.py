"""The updater of evolution strategies: mirrored pairs of episodes become one Adam step without a gradient.

Shape letters: P weights of the network, n pairs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.algorithms.evolution_config import ESConfig
from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.evolution.published import EvolvedWeights
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


def centred_ranks(returns: NDArray[np.floating]) -> NDArray[np.float32]:
    """Ranks of returns, spread evenly over [-1/2, 1/2]; equal returns share the mean of their ranks.

    Without the mean, the order of arrival would decide between games that were all won.

    Args:
      returns: [E] or any shape of E numbers, all finite; E is at least 2.
    Returns:
      float32 of the same shape; it sums to 0.
    Source: Salimans et al. 2017, Evolution Strategies, section 2.1, and `compute_centered_ranks` of its code.
    """
    flat = np.asarray(returns).reshape(-1)
    _, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts + 1) / 2)[inverse.reshape(-1)]
    centred: NDArray[np.float32] = (ranks / (flat.size - 1) - 0.5).astype(np.float32).reshape(np.shape(returns))
    return centred


@dataclass(frozen=True)
class Pairs:
    """Complete pairs, by ascending index.

    Fields:
      indices: int32 [n], perturbations in the noise table. returns: float32 [n, 2], with it and with its opposite.
      decisions: in all episodes together.
    """

    indices: NDArray[np.int32]
    returns: NDArray[np.float32]
    decisions: int


class EpisodePairs:
    """Episodes of one version of the weights, in pairs. Those of other versions, and copies, are dropped and counted.

    Attributes:
      late: episodes dropped so far because newer weights had come.
      unpaired: episodes dropped so far whose opposite had not come when their version ended.
    """

    def __init__(self) -> None:
        self.late = self.unpaired = 0
        self._version = 0
        self._halves: dict[int, tuple[float, int]] = {}
        self._complete: list[tuple[int, float, float, int]] = []

    @property
    def num_complete(self) -> int:
        """Pairs that are whole."""
        return len(self._complete)

    def begin(self, version: int) -> None:
        """From now on, count episodes of these weights alone."""
        if version != self._version:
            self.unpaired += len(self._halves)
            self._version = version
            self._halves, self._complete = {}, []

    def add(self, episodes: SeatEpisodes) -> None:
        """Take episodes in any order."""
        is_new = episodes.versions == self._version
        self.late += int(np.count_nonzero(~is_new))
        whole = {index for index, *_ in self._complete}
        for number, earned, decisions in zip(
            episodes.perturbations[is_new].tolist(),
            episodes.returns[is_new].tolist(),
            episodes.decisions[is_new].tolist(),
            strict=True,
        ):
            index = abs(number) - 1
            if index in whole or number in self._halves:
                continue  # a host that was lost plays its rounds again
            other = self._halves.pop(-number, None)
            if other is None:
                self._halves[number] = earned, decisions
                continue
            plus, minus = (earned, other[0]) if number > 0 else (other[0], earned)
            whole.add(index)
            self._complete.append((index, plus, minus, decisions + other[1]))

    def take(self) -> Pairs:
        """The complete pairs, which are forgotten."""
        pairs, self._complete = sorted(self._complete), []
        return Pairs(
            np.array([pair[0] for pair in pairs], np.int32),
            np.array([pair[1:3] for pair in pairs], np.float32).reshape(-1, 2),
            sum(pair[3] for pair in pairs),
        )
