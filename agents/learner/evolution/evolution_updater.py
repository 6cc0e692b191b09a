"""The protocol of updaters without gradients, and how one is made from its setting."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.algorithms.algorithms import UPDATERS
from league.agents.learner.config import DEFAULT_ALGORITHM, LearnerConfig
from league.agents.learner.step.updater import Updater
from league.agents.weights import Weights
from league.envs.component_choice import kind_of
from league.envs.plugin_options import options_argument
from league.envs.plugins import resolve

PLACE = "learner.algorithm"
PARTS = ("update", "weights", "save", "load", "close", "published", "late_episodes")
"""Of an `Evolving`."""


@runtime_checkable
class Evolving(Updater, Protocol):
    """An `Updater` for records of `Episodes`.

    Built as `updater(values, config, seed=...)`: float32 [P] first weights, the settings, and the run's seed; with
    `options=...` where it declares options. Until an update has enough episodes, it changes nothing and keeps them.
    One from outside has an option `evolves`, which is true in the configuration: without it, it would be a loss.
    Episodes of other weights than the newest are late. `UpdateInputs.oldest_version` is the version of the newest.

    Attributes:
      late_episodes: that it dropped so far, since they came too late.
    """

    @property
    def late_episodes(self) -> int: ...

    def published(self, weights: Weights) -> Weights:
        """The weights with what hosts need to play its next episodes."""
        ...


def make_evolving(values: NDArray[np.float32], config: LearnerConfig, *, seed: int) -> Evolving:
    """Make the updater of `config.algorithm`, a registered one or "module:attribute", with its options.

    Raises:
      ValueError: its options do not fit, or not the network, or it lacks a part of the protocol.
    """
    kind = kind_of(config.algorithm, DEFAULT_ALGORITHM)
    build = resolve(kind, UPDATERS, what=PLACE)
    made: Evolving = build(values, config, seed=seed, **options_argument(build, config.algorithm, place=PLACE))
    missing = [name for name in PARTS if not hasattr(made, name)]
    if missing:
        raise ValueError(f"{kind} learns from episodes, and its updater has no {', '.join(missing)}")
    return made
