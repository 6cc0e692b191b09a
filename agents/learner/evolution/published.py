"""Weights of evolution strategies as they are published: hosts follow their steps, or play given candidates.

Shape letters: P weights of the network, L candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.evolution.noise_table import NoiseTable
from league.agents.learner.evolution.step import EvolutionState, EvolutionStep
from league.agents.weights import Layout, Weights


@dataclass(frozen=True)
class EvolvedWeights(Weights):
    """Weights of `es`.

    Fields:
      moments: float32 [2, P], Adam's. steps: the newest ones, in order; the last one led to these weights.
      cap: decisions after which an episode is cut; 0 for never.
    """

    moments: NDArray[np.float32]
    steps: tuple[EvolutionStep, ...]
    cap: int = 0

    def since(self, version: int) -> WeightSteps | EvolvedWeights:
        """The steps since an earlier version, where they are shorter than the weights; else weights and moments."""
        steps = tuple(step for step in self.steps if step.version > version)
        follows = [step.version for step in steps] == list(range(version + 1, self.version + 1))
        if not steps or not follows or sum(step.num_bytes for step in steps) >= self.vector.nbytes:
            return EvolvedWeights(self.vector, self.layout, self.version, self.moments, (), self.cap)
        return WeightSteps(version, steps)


@dataclass(frozen=True)
class WeightSteps:
    """Steps from a version of the weights to a newer one, one for each update; none where nothing is newer."""

    since: int
    steps: tuple[EvolutionStep, ...]

    @property
    def version(self) -> int:
        """Of the weights after the last step."""
        return self.since + len(self.steps)


class WeightsFollower:
    """A host's copy of a player's weights, which takes the steps that the learner took: bit for bit the same.

    Args:
      noise: of the run.
    """

    def __init__(self, noise: NoiseTable) -> None:
        self._noise = noise
        self._layout: Layout | None = None
        self._state: EvolutionState | None = None
        self._version = self._cap = 0

    def follow(self, published: EvolvedWeights | WeightSteps) -> EvolvedWeights:
        """The weights after what was published; steps that this copy has taken already are passed over."""
        if isinstance(published, WeightSteps):
            assert self._state is not None and published.since <= self._version, "steps from a version that is not here"
            for step in published.steps:
                if step.version > self._version:
                    self._state = self._state.after(step, self._noise)
                    self._version, self._cap = step.version, step.cap
        else:
            self._layout = published.layout
            self._state = EvolutionState(published.vector, published.moments[0], published.moments[1])
            self._version, self._cap = published.version, published.cap
        assert self._layout is not None
        state = self._state
        moments = np.stack([state.first, state.second])
        return EvolvedWeights(state.values, self._layout, self._version, moments, (), self._cap)


@dataclass(frozen=True)
class CandidateWeights(Weights):
    """Weights of `cmaes`. candidates: float32 [L, P], vectors that hosts play; the vector is their mean."""

    candidates: NDArray[np.float32]
