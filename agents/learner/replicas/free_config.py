"""Options of the modes whose replicas run on clocks of their own, without torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.learner.pipeline_config import DEFAULT_UPDATE_MODE
from league.envs.component_choice import given_options, kind_of

MAX_SHARDS = 64
"""Most parts of a parameter server on one machine, each a process."""

MAX_STALENESS = 1 << 20
"""Largest bound of staleness, far beyond any use."""

OnStale = Literal["wait", "drop", "scale"]

FreeWorkers = Literal["processes", "threads"]
"""Where replicas on clocks of their own run. Threads of the learner's process start at once and share Python's lock."""


@dataclass(frozen=True)
class ParameterServerConfig:
    """Options of `parameter_server`; its optimizer is `learner.optimizer`, DistBelief's is adagrad.

    Fields:
      shards: processes that each hold a part of the weights and of the optimizer's moments.
      sync: a step waits for the gradients of all replicas and takes their mean, weighted by decisions.
      max_staleness: lag that is accepted as it is, in steps of a shard since the gradient's weights were fetched.
      on_stale: what happens beyond it. "scale" divides the gradient by 1 + lag, "drop" discards it. "wait" counts
        otherwise: a replica may have learnt from so many batches more than the slowest, for which it waits.
      push_every: batches whose gradients a replica adds up before it sends them.
      fetch_every: batches after which it fetches the weights; it steps by plain gradient descent in between.
      outlier_deviations: a gradient is discarded where its loss is so many standard deviations above the replica's
        running mean; 0 for none.
      workers: "processes", or "threads" of the learner's process.
    Source: Dean et al. 2012, Large scale distributed deep networks (Downpour SGD); Nair et al. 2015, GORILA, section
      4.3 (discards); Ho et al. 2013, stale synchronous parallel (waits); Zhang et al. 2016, staleness-aware async-SGD
      (scales).
    """

    shards: int = 1
    sync: bool = False
    max_staleness: int = 8
    on_stale: OnStale = "scale"
    push_every: int = 1
    fetch_every: int = 1
    outlier_deviations: float = 0.0
    workers: FreeWorkers = "processes"

    def problems(self) -> list[str]:
        found = []
        for name in ("shards", "push_every", "fetch_every"):
            if getattr(self, name) < 1:
                found.append(f"{name}: {getattr(self, name)} must be at least 1")
        if self.shards > MAX_SHARDS:
            found.append(f"shards: {self.shards} processes must be at most {MAX_SHARDS}")
        if not 0 <= self.max_staleness <= MAX_STALENESS:
            found.append(f"max_staleness: {self.max_staleness} is not between 0 and {MAX_STALENESS}")
        if self.outlier_deviations < 0:
            found.append(f"outlier_deviations: {self.outlier_deviations} must be at least 0")
        if self.sync and self.push_every > 1:
            found.append(f"push_every: {self.push_every} does not go with sync, where every batch is a step; use 1")
        if self.sync and self.fetch_every > 1:
            found.append(f"fetch_every: {self.fetch_every} does not go with sync, where no weights are old; use 1")
        return found


@dataclass(frozen=True)
class HogwildConfig:
    """Options of `hogwild`.

    Fields:
      workers: "processes", or "threads" of the learner's process.
    Source: Recht et al. 2011, Hogwild; Mnih et al. 2016, A3C, section 4 (shared moments).
    """

    workers: FreeWorkers = "processes"


def free_problems(config: LearnerConfig) -> Iterator[str]:
    """Settings that do not go with replicas on clocks of their own, as sentences that start with the key."""
    pipeline = config.pipeline
    if not pipeline.is_free:
        return
    mode = kind_of(pipeline.update_mode, DEFAULT_UPDATE_MODE)
    if pipeline.replicas == 1:
        yield f"pipeline.update_mode: {mode} is for replicas that learn beside each other, not for 1; use 2 or more"
    if pipeline.stages > 1:
        yield (
            f"pipeline.stages: replicas under {mode} run on clocks of their own and each hold the whole network, not "
            f"{pipeline.stages} stages; use 1"
        )
    if config.value_normalisation == "popart":
        yield (
            "value_normalisation: popart changes the network beside the optimizer, and replicas on clocks of their own "
            "would each do so from other moments; use none"
        )
    alpha = given_options(config.row_source).get("alpha", ReplayConfig.alpha)
    if kind_of(config.row_source) == "replay" and isinstance(alpha, float | int) and alpha > 0:
        yield (
            f"row_source.alpha: {alpha} samples rows by their errors, which replicas on clocks of their own do not "
            "report; use alpha: 0, or a mode in lockstep"
        )
