"""Compares a backend's gradient of a tiny batch with plain autograd's before training starts.

It catches schedules with wrong gradients, wrong scaling, stale buffers and masks that count differently. It takes one
step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.config import LearnerConfig
from league.agents.learner.errors import GradientCheckError
from league.agents.learner.step.updater import UpdateInputs
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import Layout

MAX_DIFFERENCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
"""Largest difference of a gradient, relative to the largest of its parameter, or to 1e-3 of the largest of all."""

ACROSS_DEVICES = 1e-2
"""The same in float32 between a CPU and a GPU, which have kernels of their own."""

UNROLL_STEPS = 4
BATCH_SEED = 20


class HasGradients(Protocol):
    """An updater that can compute a gradient without a step."""

    def gradients(self, blocks: Iterable[Unrolls], inputs: UpdateInputs) -> LossStats: ...

    def gradient_vector(self) -> NDArray[np.float32]: ...


def check_gradients(
    candidate: HasGradients,
    reference: HasGradients,
    *,
    spec: UnrollSpec,
    layout: Layout,
    config: LearnerConfig,
    at_most: float,
) -> float:
    """Compare the gradients of a synthetic batch: a tiny one, or one of the training size if the network is compiled.

    A network is compiled for each batch size that it meets, so that a tiny batch would prove nothing about others.

    Args:
      candidate: the updater for training; reference: one process, the whole network, the same weights.
      spec: of the unrolls in training; layout: of the network.
      at_most: largest relative difference allowed, see `tolerance`.
    Returns:
      the largest relative difference found.
    Raises:
      GradientCheckError: the gradients, or the counts of decisions, differ.
    """
    compiled = config.compile_mode != "none"
    short = dataclasses.replace(spec, unroll_length=min(UNROLL_STEPS, spec.unroll_length))
    unrolls = synthetic_unrolls(
        spec if compiled else short,
        rows=config.batch_rows if compiled else config.pipeline.replicas * config.pieces,
        seed=BATCH_SEED,
    )
    loss_weights = LossWeights(entropy_cost=0.1, advantage_scale=1.0, teacher_cost=0.1 if config.has_teacher else 0.0)
    inputs = UpdateInputs(1e-3, loss_weights, oldest_version=0, microbatches_per_block=config.pieces)
    pieces = config.microbatches if compiled else 1
    plain = UpdateInputs(1e-3, loss_weights, oldest_version=0, microbatches_per_block=pieces)
    stats, expected_stats = candidate.gradients([unrolls], inputs), reference.gradients([unrolls], plain)
    if stats.steps != expected_stats.steps:
        raise GradientCheckError(f"the backend counts {stats.steps:g} decisions in a batch of {expected_stats.steps:g}")
    return compare(candidate.gradient_vector(), reference.gradient_vector(), layout=layout, at_most=at_most)


def tolerance(dtype: torch.dtype, *, same_device: bool) -> float:
    """Largest relative difference that counts as rounding. dtype: of both; same_device: if both use one device."""
    return MAX_DIFFERENCE[dtype] if same_device else max(MAX_DIFFERENCE[dtype], ACROSS_DEVICES)


def compare(found: NDArray[np.float32], expected: NDArray[np.float32], *, layout: Layout, at_most: float) -> float:
    """Largest relative difference of two gradients, parameter by parameter.

    Args:
      found, expected: float32 [P].
    Raises:
      GradientCheckError: it is greater than `at_most` or not a number; the message names the parameter.
    """
    floor = 1e-3 * float(np.abs(expected).max()) + 1e-12
    worst = 0.0
    ends = np.cumsum(layout.sizes)
    for name, size, end in zip(layout.names, layout.sizes, ends, strict=True):
        part = slice(int(end) - size, int(end))
        scale = max(float(np.abs(expected[part]).max(initial=0.0)), floor)
        difference = float(np.abs(found[part] - expected[part]).max(initial=0.0)) / scale
        if not difference <= at_most:  # also true of NaN
            raise GradientCheckError(
                f"the gradient of {name} differs from plain autograd's by {difference:.1e} of its size (at most "
                f"{at_most:.0e} is rounding): this backend and schedule compute wrong gradients here, use another"
            )
        worst = max(worst, difference)
    return worst
