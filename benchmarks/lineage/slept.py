"""A step backend whose computation is a sleep, so that replicas have known speeds on any number of cores."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from league.agents.learner.algorithms.objective import BatchLoss, LossWeights, Objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.nets.network import Network


@dataclass(frozen=True)
class SleptConfig:
    """Options.

    Fields:
      seconds: of sleep in an update.
      slow_file: the first replica that creates this file sleeps `slowdown` times as long.
    """

    seconds: float
    slow_file: str
    slowdown: float = 5.0


class SleptBackend(SingleBackend):
    """Sleeps, then computes the gradient."""

    def __init__(
        self,
        network: Network,
        objective: Objective,
        config: LearnerConfig,
        placement: Placement,
        options: SleptConfig,
    ) -> None:
        super().__init__(network, objective, config, placement)
        try:
            os.close(os.open(options.slow_file, os.O_CREAT | os.O_EXCL))
            self._seconds = options.seconds * options.slowdown
        except FileExistsError:
            self._seconds = options.seconds

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        """As in the protocol, later."""
        time.sleep(self._seconds)
        return super().accumulate(microbatches, loss_weights)
