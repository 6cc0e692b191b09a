"""A learner's settings under the hyperparameters of its player, given by its group or by population based training."""

from __future__ import annotations

from dataclasses import replace

from league.agents.learner.config import LearnerConfig
from league.core.state.records import Hyperparameter

LEARNER_VALUES = ("learning_rate", "entropy_cost")
"""Hyperparameters that a learner takes up while it learns; `discount` is built into its objective."""


def tuned(config: LearnerConfig, hyperparameters: tuple[Hyperparameter, ...]) -> LearnerConfig:
    """The settings that a player's learner works with.

    `learning_rate` and `entropy_cost` multiply both ends of their schedules. `discount` multiplies 1 - gamma, so that a
    factor means the same at 0.9 and at 0.999. Names that are not the learner's (the core's own) change nothing here.
    """
    factors = {item.name: item.value for item in hyperparameters}
    rate, entropy = factors.get("learning_rate", 1.0), factors.get("entropy_cost", 1.0)
    return replace(
        config,
        learning_rate=config.learning_rate * rate,
        learning_rate_end=config.learning_rate_end * rate,
        entropy_cost=config.entropy_cost * entropy,
        entropy_cost_end=config.entropy_cost_end * entropy,
        gamma=1.0 - (1.0 - config.gamma) * factors.get("discount", 1.0),
    )
